import fc from '@sluice/shared/testing/fast-check';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { QueryMetrics } from '../metrics.ts';
import { QuerySlots, type SlotLimits } from './query-slots.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const TIMEOUT_MS = 1_000;

/** Creates slots, and records queries by name in the order of their admission. */
function slotsWith(given: Partial<SlotLimits>) {
  const registry = new Registry();
  const limits = { running: 2, runningOfWorkspace: 2, waiting: 100, waitingOfWorkspace: 100, ...given };
  const slots = new QuerySlots(limits, new QueryMetrics(registry), 'pages');
  const admitted: string[] = [];
  const ended = new Map<string, string>();
  const releases = new Map<string, () => void>();
  const controllers = new Map<string, AbortController>();

  /** Requests a slot. The first letter of the name is the workspace. */
  function request(name: string): void {
    const controller = new AbortController();
    controllers.set(name, controller);
    slots.acquire({ workspace: name[0] as string, timeoutMs: TIMEOUT_MS, signal: controller.signal }).then(
      (release) => {
        admitted.push(name);
        releases.set(name, release);
      },
      (error) => ended.set(name, error.reason ?? error.name),
    );
  }

  return {
    admitted,
    ended,
    request: (...names: string[]) => settled(() => names.forEach(request)),
    close: () => settled(() => slots.close()),
    end: (name: string) => settled(() => releases.get(name)?.()),
    leave: (name: string) => settled(() => controllers.get(name)?.abort()),
    pass: (ms: number) => settled(() => vi.advanceTimersByTime(ms)),
    async metric(text: string): Promise<number> {
      const line = (await registry.metrics()).split('\n').find((candidate) => candidate.startsWith(`${text} `));
      return Number(line?.split(' ').at(-1) ?? Number.NaN);
    },
  };
}

async function settled(act: () => void): Promise<void> {
  act();
  await vi.advanceTimersByTimeAsync(0);
}

test('a query runs at once while slots are free, in all and for its workspace', async () => {
  const { admitted, request } = slotsWith({ running: 3, runningOfWorkspace: 2 });
  await request('a1', 'a2', 'a3', 'b1', 'b2');
  expect(admitted).toEqual(['a1', 'a2', 'b1']);
});

test('workspaces take turns, whatever the order and the number of their queries; FIFO within a workspace', async () => {
  const { admitted, request, end } = slotsWith({ running: 1 });
  await request('a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'c1');
  for (const next of ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4', 'a5']) {
    expect(admitted.at(-1)).toBe(next);
    await end(next);
  }
  expect(admitted).toHaveLength(8);
});

test('a workspace that comes late waits for at most one turn of the others', async () => {
  const { admitted, request, end } = slotsWith({ running: 2, runningOfWorkspace: 2 });
  await request(...Array.from({ length: 50 }, (_, index) => `a${index}`), 'b1');
  await end('a0');
  await end('a1');
  expect(admitted).toEqual(['a0', 'a1', 'a2', 'b1']);
});

test('a workspace that comes back stands in line behind those that wait', async () => {
  const { admitted, request, end } = slotsWith({ running: 1 });
  await request('c1');
  await end('c1');
  await request('a1', 'b1', 'd1', 'c2');
  for (const name of ['a1', 'b1', 'd1']) await end(name);
  expect(admitted).toEqual(['c1', 'a1', 'b1', 'd1', 'c2']);
});

test('a workspace at its limit lets others pass, and goes on when one of its own ends', async () => {
  const { admitted, request, end } = slotsWith({ running: 3, runningOfWorkspace: 1 });
  await request('a1', 'a2', 'b1', 'b2', 'c1', 'd1');
  expect(admitted).toEqual(['a1', 'b1', 'c1']);
  await end('b1');
  expect(admitted.at(-1)).toBe('b2');
  await end('c1');
  expect(admitted.at(-1)).toBe('d1');
  await end('d1');
  expect(admitted).toHaveLength(5);
  await end('a1');
  expect(admitted.at(-1)).toBe('a2');
});

test('releasing a slot twice frees it once', async () => {
  const { admitted, request, end } = slotsWith({ running: 1 });
  await request('a1', 'a2', 'a3');
  await end('a1');
  await end('a1');
  expect(admitted).toEqual(['a1', 'a2']);
});

test('a query whose client disconnects leaves the queue at once, and one whose client is already gone never enters it', async () => {
  const { admitted, ended, request, leave, end, metric } = slotsWith({ running: 1 });
  await request('a1', 'a2', 'a3');
  await leave('a2');
  expect([...ended]).toEqual([['a2', 'AbortError']]);
  expect(await metric('sluice_queries{pool="pages",state="waiting"}')).toBe(1);
  await end('a1');
  expect(admitted).toEqual(['a1', 'a3']);
  // It runs already.
  await leave('a3');
  expect(await metric('sluice_queries{pool="pages",state="running"}')).toBe(1);
  expect(await metric('sluice_queries{pool="pages",state="waiting"}')).toBe(0);

  const limits = { running: 1, runningOfWorkspace: 1, waiting: 1, waitingOfWorkspace: 1 };
  const slots = new QuerySlots(limits, new QueryMetrics(new Registry()), 'pages');
  const signal = AbortSignal.abort(new Error('gone'));
  await expect(slots.acquire({ workspace: 'a', timeoutMs: 1, signal })).rejects.toThrow('gone');
});

test('a wait ends exactly with its time', async () => {
  const { admitted, ended, request, end, pass } = slotsWith({ running: 1 });
  await request('a1', 'a2', 'b1');
  await pass(TIMEOUT_MS - 1);
  expect(ended.size).toBe(0);
  await end('a1');
  await pass(1);
  expect([...ended]).toEqual([['b1', 'timed_out']]);
  await pass(10 * TIMEOUT_MS);
  await request('b2');
  await end('a2');
  expect(admitted).toEqual(['a1', 'a2', 'b2']);
});

test('the queue is bounded, in all and for a workspace, and a place that is left is free again', async () => {
  const { admitted, ended, request, leave, end } = slotsWith({ running: 1, waiting: 3, waitingOfWorkspace: 2 });
  await request('a1', 'a2', 'a3', 'a4', 'b1', 'b2');
  expect([...ended]).toEqual([
    ['a4', 'full'],
    ['b2', 'full'],
  ]);
  await leave('a2');
  await request('c1');
  for (const name of ['a1', 'a3', 'b1']) await end(name);
  expect(admitted).toEqual(['a1', 'a3', 'b1', 'c1']);
});

test('a full queue still takes the first query of a workspace', async () => {
  const { admitted, ended, request, end } = slotsWith({ running: 1, waiting: 2 });
  await request('a1', 'a2', 'b1', 'c1', 'c2');
  expect([...ended]).toEqual([['c2', 'full']]);
  for (const name of ['a1', 'a2', 'b1']) await end(name);
  expect(admitted).toEqual(['a1', 'a2', 'b1', 'c1']);
});

test('once closed no query waits, and one that finds a free slot still runs', async () => {
  const { admitted, ended, request, end, close } = slotsWith({ running: 2 });
  await request('a1', 'b1', 'a2', 'a3', 'b2');
  await close();
  await request('c1');
  expect([...ended.keys()].sort()).toEqual(['a2', 'a3', 'b2', 'c1']);
  expect(new Set(ended.values())).toEqual(new Set(['closed']));
  await end('a1');
  await request('c2', 'c3');
  expect([admitted, ended.get('c3')]).toEqual([['a1', 'b1', 'c2'], 'closed']);
});

test('metrics count the queries that run and wait, and the outcomes of waits, without naming a workspace', async () => {
  const { request, leave, pass, metric } = slotsWith({ running: 1, waiting: 2 });
  await request('a1', 'a2', 'b1', 'b2');
  expect(await metric('sluice_queries{pool="pages",state="running"}')).toBe(1);
  expect(await metric('sluice_queries{pool="pages",state="waiting"}')).toBe(2);
  await leave('a2');
  await pass(TIMEOUT_MS);
  for (const outcome of ['admitted', 'full', 'cancelled', 'timed_out']) {
    expect(await metric(`sluice_query_wait_seconds_count{pool="pages",outcome="${outcome}"}`), outcome).toBe(1);
  }
  expect(await metric('sluice_queries{pool="pages",state="waiting"}')).toBe(0);
});

type Act = readonly ['request' | 'end' | 'leave', nat: number];

test('for any sequence of requests, ends and aborts: no limit is exceeded, no slot is idle, no workspace overtakes another twice', async () => {
  const acts = fc.array(
    fc.tuple(fc.constantFrom('request' as const, 'request' as const, 'end' as const, 'leave' as const), fc.nat()),
    { maxLength: 60, size: 'max' },
  );
  const limits = fc.record({
    running: fc.integer({ min: 1, max: 4 }),
    runningOfWorkspace: fc.integer({ min: 1, max: 3 }),
    waiting: fc.integer({ min: 1, max: 12 }),
    waitingOfWorkspace: fc.integer({ min: 1, max: 6 }),
  });
  await fc.assert(fc.asyncProperty(limits, acts, check), { numRuns: 300 });

  async function check(given: SlotLimits, acted: readonly Act[]): Promise<void> {
    const { admitted, ended, request, end, leave } = slotsWith(given);
    let running: string[] = [];
    let waiting: string[] = [];
    /** Of each workspace, the others that were admitted since its first query could have been. */
    const overtakers = new Map<string, string[]>();
    const of = (names: readonly string[], workspace: string) => names.filter((name) => name[0] === workspace);
    const mayRun = (workspace: string) =>
      running.length < given.running && of(running, workspace).length < given.runningOfWorkspace;

    for (const [index, [act, nat]] of acted.entries()) {
      const before = admitted.length;
      if (act === 'request') {
        const workspace = 'abc'[nat % 3] as string;
        const name = `${workspace}${index}`;
        const own = of(waiting, workspace).length;
        // One of each may always wait.
        const full = own > 0 && (waiting.length >= given.waiting || own >= given.waitingOfWorkspace);
        const runs = mayRun(workspace);
        await request(name);
        expect(ended.get(name)).toBe(!runs && full ? 'full' : undefined);
        if (runs || !full) waiting.push(name);
      } else if (act === 'end' && running.length > 0) {
        const name = running[nat % running.length] as string;
        running = running.filter((other) => other !== name);
        await end(name);
      } else if (act === 'leave' && waiting.length > 0) {
        const name = waiting[nat % waiting.length] as string;
        waiting = waiting.filter((other) => other !== name);
        await leave(name);
        expect(ended.get(name)).toBe('AbortError');
      }
      for (const name of admitted.slice(before)) {
        const workspace = name[0] as string;
        expect(of(waiting, workspace)[0], 'FIFO within a workspace').toBe(name);
        for (const other of 'abc') {
          if (other === workspace || of(waiting, other).length === 0 || !mayRun(other)) continue;
          const passed = [...(overtakers.get(other) ?? []), workspace];
          expect(new Set(passed).size, 'taking turns').toBe(passed.length);
          overtakers.set(other, passed);
        }
        overtakers.delete(workspace);
        waiting = waiting.filter((one) => one !== name);
        running.push(name);
      }
      expect(running.length).toBeLessThanOrEqual(given.running);
      for (const workspace of 'abc') {
        if (of(waiting, workspace).length === 0) overtakers.delete(workspace);
        expect(of(running, workspace).length).toBeLessThanOrEqual(given.runningOfWorkspace);
        expect(of(waiting, workspace).length === 0 || !mayRun(workspace), 'no slot is idle').toBe(true);
      }
    }
  }
});
