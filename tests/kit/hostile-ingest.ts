import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect } from 'vitest';
import type { HostileLoad } from './hostile-load.ts';
import { type IngestAlone, startIngestAlone } from './ingest-alone.ts';
import { readMetric } from './metrics.ts';

const MEBIBYTE = 1_024 * 1_024;

const ORDINARY = '{"foreignUserGroupId":"a","events":[{"event":"e"}]}';

/** With the workspaces `hostile` and `other`, a heap of 256 MiB and default settings. */
export interface HostileIngest extends IngestAlone {
  /** What it takes when it has accepted some ordinary submissions. */
  readonly idleBytes: number;
}

/** @param name of its topics */
export async function startHostileIngest(kafkaBrokers: readonly string[], name: string): Promise<HostileIngest> {
  await using started = new AsyncDisposableStack();
  const ingest = started.use(
    await startIngestAlone({
      kafkaBrokers,
      name,
      workspaces: ['hostile', 'other'],
      // Everything else as it is by default: the budget follows from the heap's limit.
      env: { NODE_OPTIONS: '--max-old-space-size=256' },
    }),
  );
  await latencies(ingest, 100);
  const idleBytes = (await ingest.memory()).now;
  started.move();
  return { ...ingest, idleBytes };
}

/** The durations of so many ordinary submissions of another workspace, one after the other, in milliseconds. */
export async function latencies(ingest: IngestAlone, count: number): Promise<number[]> {
  const found: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const startedAt = performance.now();
    expect(await ingest.submit(ORDINARY, { workspace: 'other' })).toBe(202);
    found.push(performance.now() - startedAt);
  }
  return found;
}

export async function expectBoundedMemory(ingest: HostileIngest): Promise<void> {
  const grown = (await ingest.memory()).peak - ingest.idleBytes;
  const budgetBytes = await readMetric(ingest.service, 'sluice_ingest_memory_budget_bytes');
  // As docs/operate/configuration.md says. However long the load lasts it is 60 to 200 MiB: garbage stays for longer where
  // the processors are busy.
  expect(grown / MEBIBYTE).toBeLessThan(budgetBytes / MEBIBYTE + 250);
  expect(await readMetric(ingest.service, 'sluice_ingest_reserved_bytes')).toBe(0);
}

/** Submits hostile bodies of one workspace over so many connections, while `work` runs. */
export async function underHostileLoad<Result>(
  ingest: IngestAlone,
  connections: number,
  work: (responses: () => Promise<ReadonlyMap<number, number>>) => Promise<Result>,
): Promise<Result> {
  const workerData: HostileLoad = { url: ingest.service.url, connections };
  const worker = new Worker(new URL('hostile-load.ts', import.meta.url), { workerData });
  const responses = async () => {
    worker.postMessage('how many?');
    const [statuses] = (await once(worker, 'message')) as [Map<number, number>];
    return statuses;
  };
  try {
    return await work(responses);
  } finally {
    await worker.terminate();
  }
}

/**
 * Submits all hostile bodies at once: memory is bounded, and the process lives.
 *
 * @param responses how many there are at least, some of each status
 */
export async function expectToBear(ingest: HostileIngest, connections: number, responses: number): Promise<void> {
  const expected = [202, 400, 413, 503];
  const statuses = await underHostileLoad(ingest, connections, async (soFar) => {
    return await until('some responses of each status', async () => {
      const found = await soFar();
      const total = [...found.values()].reduce((sum, count) => sum + count, 0);
      return total >= responses && expected.every((status) => (found.get(status) ?? 0) >= 3) ? found : undefined;
    });
  });
  for (const status of statuses.keys()) expect([0, ...expected]).toContain(status);
  // What was under way ends first.
  await eventually(() => readMetric(ingest.service, 'sluice_ingest_reserved_bytes')).toBe(0);
  await expectBoundedMemory(ingest);
  expect(await ingest.submit(ORDINARY)).toBe(202);
}
