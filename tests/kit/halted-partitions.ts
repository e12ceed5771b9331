import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect } from 'vitest';
import { readMetric } from './metrics.ts';
import { type CommandOutcome, operatorOf } from './operator.ts';
import { type Pipeline, startPipeline } from './pipeline.ts';
import type { Service } from './service.ts';

/** A pipeline whose topics have two partitions each, with an operator. */
export interface OperatedPipeline extends AsyncDisposable {
  readonly running: Pipeline;
  /** `npm run writer -- …` */
  readonly operate: (...args: string[]) => Promise<CommandOutcome>;
  /** Waits until so many more events are visible, and no others. */
  readonly settledWith: (more: number) => Promise<void>;
}

export async function startOperated(options: {
  readonly kafkaBrokers: readonly string[];
  readonly clickhouseUrl: string;
  readonly name: string;
}): Promise<OperatedPipeline> {
  const running = await startPipeline({ ...options, env: { KAFKA_PARTITIONS: '2' } });
  const operate = operatorOf({ ...options, database: running.database });
  let visible = 0;
  const settledWith = async (more: number) => {
    visible += more;
    await running.settled(visible);
  };
  return { running, operate, settledWith, [Symbol.asyncDispose]: running.stop };
}

/** Submits events one by one, so that both partitions get some of them. */
export async function submitEach(running: Pipeline, count: number, event = 'e'): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const body = { foreignUserGroupId: 'g', events: [{ event }] };
    await until('a 202', async () => (await running.submit(body)).status === 202);
  }
}

/** Starts the writer without waiting until it is ready, which it is not while a partition is halted. */
export function startWriter(running: Pipeline): Service {
  running.services.writer = running.services.writer.again();
  return running.services.writer;
}

/** Returns the status and the body of `/readyz`. */
export async function readiness(writer: Service): Promise<string> {
  const response = await fetch(`${writer.url}/readyz`).catch(() => undefined);
  return response ? `${response.status} ${await response.text()}` : 'no response';
}

/** Waits until the writer has recorded a halt, and resumes all halted partitions from their oldest message. */
export async function resumeAll({ operate }: OperatedPipeline): Promise<void> {
  await until('the halt to be recorded', async () => (await operate('status')).output.includes('halted'));
  await until('everything to be resumed', async () => {
    await operate('resume', '--all', '--from', 'oldest', '--yes');
    return !(await operate('status')).output.includes('halted');
  });
}

/** Waits until a partition is halted for a reason, and checks that the writer reports it everywhere and is alive. */
export async function expectHalted(writer: Service, partition: string, why: RegExp): Promise<void> {
  await eventually(() => readiness(writer)).toMatch(new RegExp(`^503 .*${partition} is halted`));
  // A writer that joins its group again has no partition for a moment.
  await eventually(() => readiness(writer)).toMatch(why);
  await eventually(() => readMetric(writer, 'sluice_writer_halted_partitions')).toBeGreaterThan(0);
  expect((await fetch(`${writer.url}/livez`)).status).toBe(200);
}
