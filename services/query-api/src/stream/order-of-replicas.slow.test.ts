import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { Row } from '../store/clickhouse-reader.ts';
import type { Statement } from '../store/query.ts';
import { OneStore } from '../store/stores.ts';
import { LOCAL_TABLES, REPLICATED_TABLES, type Tables } from '../store/tables.ts';
import { ALL_VISIBLE } from '../testing/all-visible.ts';
import { MeasuredRunner } from '../testing/measured-runner.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import { LogClock } from './log-clock.ts';
import { endOfBlock, type StreamPosition } from './stream-position.ts';
import { asStreamRow, newestPosition, newestQuery, pageQuery, recordsQuery } from './stream-query.ts';

// What a replica is asked is answered by any server whose `stream_order` writers have filled.

const SELECTION = { workspace: 'a', fields: [], properties: [] };

let query: QueryService;
let runner: MeasuredRunner;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  runner = new MeasuredRunner(query.clickHouse, query.config, REPLICATED_TABLES);
});
afterAll(() => query.stop());

async function read(
  statement: Statement['statement'],
): Promise<{ readonly rows: readonly Row[]; readonly read: number }> {
  let rows: readonly Row[] = [];
  const cost = await runner.measure(async () => {
    rows = await runner.all({ statement, kind: 'stream_events', workspace: '' });
  });
  return { rows, read: cost.rows };
}

/** Stores events as an insert of their own, and returns the number of its block, with the partition. */
async function block(...uuids: readonly string[]): Promise<readonly [partition: number, number: number]> {
  await query.store(
    'a',
    uuids.map((uuid) => anEvent({ uuid })),
  );
  const result = await query.clickHouse.query({
    query: `SELECT toUInt32(any(_partition_id)), max(_block_number) FROM events WHERE uuid = {uuid:UUID}`,
    ...{ query_params: { uuid: uuids[0] }, format: 'JSONCompactEachRow' },
  });
  return (await result.json<[number, number]>())[0] ?? [0, 0];
}

async function record(
  number: number,
  blocks: readonly (readonly [number, number])[],
  isReached = false,
): Promise<void> {
  const [partitions, numbers] = [blocks.map(([partition]) => partition), blocks.map(([, one]) => one)];
  const query_params = { record: isReached ? 0 : number, number, partitions, numbers };
  await query.clickHouse.command({
    query: `INSERT INTO stream_order (record, number, partitions, firsts, lasts, started_at)
      SELECT {record:UInt64}, {number:UInt64}, {partitions:Array(UInt32)}, {numbers:Array(UInt64)}, {numbers:Array(UInt64)}, now() - uptime()`,
    query_params,
  });
}

const at = (number: number): StreamPosition => new Map([[0, endOfBlock(number)]]);

async function page(from: StreamPosition, to: StreamPosition, limit = 100) {
  const found = await read((tables) => pageQuery(tables, [SELECTION], new Map(), { from, to, limit }));
  return { ...found, places: found.rows.map(asStreamRow).map(({ place }) => [place.block, place.uuid]) };
}

const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

test('events come by the numbers of records, also after merges; what has none does not come', async () => {
  const nothing = new Map([[0, endOfBlock(0)]]);
  expect(newestPosition((await read(newestQuery)).rows)).toEqual(nothing);
  const store = { name: '', reader: undefined as never, tables: REPLICATED_TABLES, visibility: ALL_VISIBLE };
  const clock = new LogClock({ queryRunner: runner, stores: new OneStore(store) });
  expect(await clock.read()).toEqual({ nowMs: expect.any(Number), throughMs: undefined });
  const first = await block(uuid(1), uuid(2));
  const late = await block(uuid(3));
  await block(uuid(4));
  const last = await block(uuid(5));
  await record(1_000, [last]);
  await record(1_001, [first]);
  await record(1_001, [first]);
  await record(1_005, [late]);
  // A row that was told before the start of the server does not count.
  await query.clickHouse.command({
    query: `INSERT INTO stream_order (record, number, started_at) SELECT 0, 2000, now() - uptime() - 10`,
  });
  expect(newestPosition((await read(newestQuery)).rows)).toEqual(nothing);
  await record(1_005, [first, late, last], true);
  expect(newestPosition((await read(newestQuery)).rows)).toEqual(at(1_005));
  const expected = [
    [1_000, uuid(5)],
    [1_001, uuid(1)],
    [1_001, uuid(2)],
    [1_005, uuid(3)],
  ];
  expect((await page(at(0), at(1_005))).places).toEqual(expected);
  await mergeParts(query.clickHouse, 'events');
  expect((await page(at(0), at(1_005))).places).toEqual(expected);
  expect((await page(at(1_000), at(1_001))).places).toEqual(expected.slice(1, 3));
  const [, second] = (await page(at(0), at(1_005))).rows.map(asStreamRow);
  if (!second) throw new Error('there is no second event');
  expect((await page(new Map([[0, second.place]]), at(1_005))).places).toEqual(expected.slice(2));
  const { orderRecords = '' } = REPLICATED_TABLES;
  const found = async (from: number, limit: number) =>
    (await read(() => recordsQuery(orderRecords, { from: at(from), to: at(1_005), limit }))).rows;
  expect(await found(1_000, 10)).toEqual([[0, 2, 1_005]]);
  expect(await found(0, 2)).toEqual([[0, 2, 1_001]]);
});

test('new events are found without reading old ones', async () => {
  const cost = async (number: number) => {
    await record(number, [await block(uuid(number))]);
    await record(number, [], true);
    const { read: looking } = await read(newestQuery);
    const { read: reading, places } = await page(at(number - 1), at(number));
    expect(places).toEqual([[number, uuid(number)]]);
    return { looking, reading };
  };
  const small = await cost(5_000);
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
      SELECT 'a', now64(3) - toIntervalMinute(number % 100000) AS time, generateUUIDv4(number), 'e', time FROM numbers(200000)`,
    clickhouse_settings: { max_partitions_per_insert_block: '0' },
  });
  await mergeParts(query.clickHouse, 'events');
  const large = await cost(6_000);
  expect(small.reading).toBeLessThanOrEqual(10);
  expect(large.reading).toBeLessThanOrEqual(small.reading + 10);
  expect(large.looking).toBeLessThanOrEqual(small.looking + 10);

  // Blocks inside of merged parts are read as on one server.
  const blocks = await query.clickHouse.query({
    query: `SELECT toUInt32(_partition_id) AS partition, toUInt32(max(_block_number)) FROM events GROUP BY partition`,
    format: 'JSONCompactEachRow',
  });
  const last = await blocks.json<[number, number]>();
  await record(7_000, last);
  const oneServer = new MeasuredRunner(query.clickHouse, query.config, LOCAL_TABLES);
  const highest = Math.max(...last.map(([, number]) => number));
  const statement = (tables: Tables) =>
    pageQuery(tables, [SELECTION], new Map(), { from: at(0), to: at(highest), limit: 100 });
  const { rows } = await oneServer.measure(() => oneServer.all({ statement, kind: 'stream_events', workspace: '' }));
  expect((await page(at(6_000), at(7_000))).read).toBeLessThanOrEqual(rows + 10);
});
