import { afterEach, expect, inject, test } from 'vitest';
import { readMetric } from '../support/metrics.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { until } from '../support/service.ts';

let pipeline: Pipeline;

afterEach(() => pipeline.stop());

async function start(name: string): Promise<void> {
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name,
    env: { INGEST_WORKERS: '2', LOG_LEVEL: 'debug' },
  });
}

interface LogLine {
  readonly pid: number;
  readonly worker?: number;
  readonly msg: string;
}

function workerLines(): LogLine[] {
  const lines = pipeline.services['ingest-api'].log().trim().split('\n');
  return lines.map((line) => JSON.parse(line) as LogLine).filter(({ worker }) => worker !== undefined);
}

function workerPids(): number[] {
  return [...new Set(workerLines().map(({ pid }) => pid))];
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('two workers share the port, every event is stored once, and the metrics are those of both', async () => {
  await start('workers');
  const servedBy = () =>
    new Set(
      workerLines()
        .filter(({ msg }) => msg === 'response sent')
        .map(({ worker }) => worker),
    );
  let sent = 0;
  await until('both workers to serve', async () => {
    const body = { foreignUserGroupId: 'g', events: [{ event: 'a' }, { event: 'b' }] };
    const responses = await Promise.all(Array.from({ length: 8 }, () => pipeline.submit(body)));
    expect(responses.map(({ status }) => status)).toEqual(Array(8).fill(202));
    sent += 16;
    return servedBy().size === 2;
  });
  await pipeline.settled(sent);
  expect(await readMetric(pipeline.services['ingest-api'], 'sluice_ingest_accepted_events_total')).toBe(sent);
  const pids = workerPids();
  expect(pids).toHaveLength(2);
  expect(await pipeline.services['ingest-api'].stop()).toBe(0);
  expect(pids.filter(isRunning)).toEqual([]);
});

test('when a worker is killed the service ends with an error, and when the primary is killed no worker outlives it', async () => {
  await start('workersKilled');
  await until('both workers to start', async () => workerPids().length === 2);
  const [first = 0, second = 0] = workerPids();
  process.kill(first, 'SIGKILL');
  expect(await pipeline.services['ingest-api'].endsItself()).toBe(1);
  expect(isRunning(second)).toBe(false);
  await pipeline.restart('ingest-api');
  await until('both workers to start', async () => workerPids().length === 2);
  const pids = workerPids();
  await pipeline.services['ingest-api'].kill9();
  await until('the workers to end', async () => !pids.some(isRunning));
});
