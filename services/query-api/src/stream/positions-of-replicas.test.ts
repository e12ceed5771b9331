import { createLogger } from '@sluice/shared/base/log';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { StreamMetrics } from '../metrics.ts';
import type { Row } from '../store/clickhouse-reader.ts';
import type { QueryRunner } from '../store/store.ts';
import { OneStore } from '../store/stores.ts';
import { REPLICATED_TABLES } from '../store/tables.ts';
import { ALL_VISIBLE } from '../testing/all-visible.ts';
import { StreamHub } from './stream-hub.ts';
import { endOfBlock, type StreamId, type StreamPosition } from './stream-position.ts';
import { StreamReader } from './stream-reader.ts';

const DAY_MS = 86_400_000;
const DATABASE = '00000000-0000-0000-0000-0000aaaaaaaa';

/** @param answer returns the rows of each statement */
function readingOf(answer: () => readonly Row[], { name = 'r1', databaseId = DATABASE } = {}) {
  const store = { name, databaseId, reader: undefined as never, tables: REPLICATED_TABLES, visibility: ALL_VISIBLE };
  const queryRunner = { all: async () => answer() } as unknown as QueryRunner;
  return { queryRunner, store, stores: new OneStore(store) };
}

function hubOf(...given: Parameters<typeof readingOf>): StreamHub {
  return new StreamHub({
    ...{ ...readingOf(...given), logger: createLogger('test', 'silent') },
    config: { STREAM_INTERVAL_MS: 1_000, CLICKHOUSE_REPLICATION: 'replicated' },
    metrics: new StreamMetrics(new Registry()),
  });
}

const at = (...numbers: readonly number[]): StreamPosition =>
  new Map(numbers.map((number, index) => [numbers.length === 1 ? 0 : index + 1, endOfBlock(number)]));

function idOf(position: StreamPosition, { database = 'aaaaaaaa', sentAtMs = Date.now() } = {}): StreamId {
  return { position, sentAtMs, origin: { server: 'r2', database, throughMs: Date.now() } };
}

test('a position of another replica goes on, also where that one was further; one that no replica has sent is refused', async () => {
  const now = Date.now();
  const hub = hubOf(() => [[0, now]]);
  const end = await hub.end();
  for (const number of [now - 1, now + 2_000])
    expect(await hub.beginning(idOf(at(number)), end)).toEqual({ position: at(number), throughMs: 0 });
  // Writers whose clocks were ahead give numbers above the clock.
  const ahead = at(now + 3_600_000);
  expect((await hub.beginning(idOf(ahead), ahead)).position).toEqual(ahead);
  const refused: readonly StreamId[] = [
    idOf(new Map([[5, endOfBlock(1)]])),
    idOf(new Map([...at(now), [5, endOfBlock(1)]])),
    idOf(new Map([[0, { block: 0, timestampMs: 0, uuid: '00000000-0000-0000-0000-000000000000' }]])),
    idOf(at(now + 3_600_000)),
    idOf(at(now - 1), { database: 'bbbbbbbb' }),
    idOf(at(now - 1), { sentAtMs: now - 8 * DAY_MS }),
    { ...idOf(at(now - 1)), origin: undefined },
  ];
  for (const id of refused) await expect(hub.beginning(id, end)).rejects.toMatchObject({ code: 'position_lost' });
});

test('nothing is read before each shard was told what it has reached', async () => {
  const rows = [
    [1, 1_000],
    [2, 0],
  ];
  const hub = hubOf(() => rows, { name: 'a1+b1', databaseId: `${DATABASE}+${DATABASE}` });
  await expect(hub.end()).rejects.toMatchObject({ code: 'store_unavailable' });
  rows[1] = [2, 2_000];
  expect(await hub.end()).toEqual(at(1_000, 2_000));
});

test('a page ends at the last of so many records', async () => {
  let rows: readonly Row[] = [[0, 20_000, 500_000]];
  const common = { signal: new AbortController().signal, onSent: () => undefined, isReplica: true };
  const reader = new StreamReader({ ...readingOf(() => rows), ...common });
  const end = at(1_000_000);
  expect(await reader.pageEnd(at(1), end)).toEqual(at(500_000));
  rows = [[0, 19_999, 500_000]];
  expect(await reader.pageEnd(at(1), end)).toEqual(end);
});
