import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Row } from '../clickhouse-reader.ts';
import { DefaultIdentities } from './default-identities.ts';
import { LinkedWorkspaces } from './linked-workspaces.ts';

/** Whoever reads ClickHouse, and what was asked and is not answered yet. */
function slowRunner() {
  const asked: PromiseWithResolvers<readonly Row[]>[] = [];
  const all = async () => {
    const answer = Promise.withResolvers<readonly Row[]>();
    asked.push(answer);
    return await answer.promise;
  };
  return { runner: { all }, asked };
}

let aheadMs = 0;

/** The cache looks at the time once in a millisecond. */
async function pass(ms: number): Promise<void> {
  aheadMs += ms;
  await wait(10);
}

beforeEach(() => {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
});
afterEach(() => void vi.restoreAllMocks());

test('requests at the same time wait for one read, and what it found holds for ten seconds', async () => {
  const { runner, asked } = slowRunner();
  const known = new DefaultIdentities(runner);
  const early = [known.of('a'), known.of('a')];
  expect(asked).toHaveLength(1);
  asked[0]?.resolve([['raw']]);
  expect(await Promise.all(early)).toEqual(['raw', 'raw']);
  await pass(5_000);
  expect(await known.of('a')).toBe('raw');
  await pass(6_000);
  const later = known.of('a');
  expect(asked).toHaveLength(2);
  asked[1]?.resolve([]);
  expect(await later).toBe('linked');
});

test('what was set while an earlier read was under way stays known', async () => {
  const { runner, asked } = slowRunner();
  const known = new DefaultIdentities(runner);
  const early = known.of('a');
  known.note('a', 'raw');
  asked[0]?.resolve([['linked']]);
  await early;
  expect(await known.of('a')).toBe('raw');
  expect(asked).toHaveLength(1);
});

test('a read that fails is told to those who wait for it, and the next request asks again', async () => {
  const { runner, asked } = slowRunner();
  for (const ask of [new DefaultIdentities(runner).of, new LinkedWorkspaces(runner).identities]) {
    asked.length = 0;
    const early = [ask('a'), ask('a')].map((one) => one.catch((error: Error) => error.message));
    asked[0]?.reject(new Error('ClickHouse is away'));
    expect(await Promise.all(early)).toEqual(['ClickHouse is away', 'ClickHouse is away']);
    const again = ask('a');
    expect(asked).toHaveLength(2);
    asked[1]?.resolve([]);
    await again;
  }
});

test('that a workspace has merges is known for a minute, and anything less for a second', async () => {
  const { runner, asked } = slowRunner();
  const { identities } = new LinkedWorkspaces(runner);
  const first = identities('a');
  asked[0]?.resolve([[0]]);
  expect(await first).toEqual({ areLinked: true, areMerged: false });
  await pass(1_500);
  const second = identities('a');
  expect(asked).toHaveLength(2);
  asked[1]?.resolve([[0], [1]]);
  expect(await second).toEqual({ areLinked: true, areMerged: true });
  await pass(50_000);
  expect(await identities('a')).toEqual({ areLinked: true, areMerged: true });
  expect(asked).toHaveLength(2);
  await pass(11_000);
  void identities('a');
  expect(asked).toHaveLength(3);
});
