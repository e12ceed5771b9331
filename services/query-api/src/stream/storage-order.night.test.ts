import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { sleep } from '@sluice/shared/base/retry';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { eventually } from '@sluice/shared/testing/eventually';
import fc, { HOW_TO_REPEAT, sample } from '@sluice/shared/testing/fast-check';
import { expect, onTestFinished, test } from 'vitest';
import type { Row } from '../store/clickhouse-reader.ts';
import { querySettings } from '../store/query-settings.ts';
import type { Sql } from '../store/sql.ts';
import { LOCAL_TABLES } from '../store/tables.ts';
import { anEvent, type QueryService, startQuery, type TestEvent } from '../testing/query-service.ts';
import { isPlaceAtLeast, type StoredAt, type StreamPosition } from './stream-position.ts';
import { asStreamRow, newestPosition, newestQuery, pageQuery } from './stream-query.ts';

const WRITERS = 5;
const BATCHES = 40;
const DAY_MS = 86_400_000;
const SELECTION = { workspace: 'a', fields: [], properties: [] };

interface Followed {
  readonly uuid: string;
  readonly place: StoredAt;
}

async function read({ clickHouse, config }: QueryService, { sql, params }: Sql): Promise<readonly Row[]> {
  const options = { query_params: { ...params }, clickhouse_settings: querySettings(config) };
  const result = await clickHouse.query({ ...options, query: sql, format: 'JSONCompact' });
  return (await result.json<Row>()).data;
}

/** Repeats what fails while ClickHouse is away. */
async function insist<Result>(work: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch {
      await sleep(20);
    }
  }
}

const newest = async (service: QueryService) => newestPosition(await read(service, newestQuery(LOCAL_TABLES)));

/** Reads on to a position, in pages of some events, and returns what it read. */
async function follow(service: QueryService, start: StreamPosition, to: StreamPosition): Promise<Followed[]> {
  const found: Followed[] = [];
  for (let from = start; ; ) {
    const rows = await insist(() =>
      read(service, pageQuery(LOCAL_TABLES, [SELECTION], new Map(), { from, to, limit: 50 })),
    );
    const events = rows.map(asStreamRow);
    found.push(...events.map(({ event, place }) => ({ uuid: event[0] as string, place })));
    const last = events.at(-1);
    if (events.length < 50 || !last) return found;
    from = new Map([[last.shard, last.place]]);
  }
}

/** The months of the events of a batch. */
type Batch = readonly number[];

const anyBatch: fc.Arbitrary<Batch> = fc.array(fc.nat(3), { minLength: 1, maxLength: 30, size: 'max' });

/** Some months in one insert: each becomes a part of its own, with a block of its own. Every tenth event is of `gone`. */
function eventsOf(months: Batch): TestEvent[] {
  return months.map((month, index) =>
    anEvent({
      timestampMs: Date.UTC(2026, 2, 1) - month * 31 * DAY_MS + index,
      userId: index % 10 === 9 ? 'gone' : 'stays',
    }),
  );
}

/** Stores batches as a writer does: after an unclear failure it adds what is not stored yet. */
async function write(service: QueryService, batches: readonly Batch[]): Promise<TestEvent[]> {
  const written: TestEvent[] = [];
  for (const batch of batches) {
    const events = eventsOf(batch);
    await insist(async () => {
      const uuids = events.map(({ uuid }) => uuid);
      const query = 'SELECT uuid FROM events WHERE uuid IN {uuids:Array(UUID)}';
      const stored = new Set((await read(service, { sql: query, params: { uuids } })).flat());
      const missing = events.filter(({ uuid, userId }) => !stored.has(uuid) && !(stored.size > 0 && userId === 'gone'));
      if (missing.length > 0) await service.store('a', missing);
    });
    written.push(...events);
  }
  return written;
}

test('the order of storage skips and repeats nothing, whatever is inserted, merged, erased and killed at the same time', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-order-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const engine = await startClickHouse({ dataDir, accounts: TEST_ACCOUNTS });
  onTestFinished(() => engine.kill9());
  const service = await startQuery(engine.url);
  const start = await newest(service);

  const batches = sample(fc.array(anyBatch, { minLength: BATCHES, maxLength: BATCHES }), WRITERS);
  const writing = Promise.all(batches.map((ofWriter) => write(service, ofWriter)));
  let ended = false;
  const followed: Followed[] = [];
  const following = (async () => {
    let from = start;
    for (let last = false; !last; ) {
      last = ended;
      const to = await insist(() => newest(service));
      followed.push(...(await follow(service, from, to)));
      from = to;
    }
  })();
  const disturbing = (async () => {
    while (!ended) {
      await service.clickHouse.command({ query: 'OPTIMIZE TABLE events FINAL' }).catch(() => undefined);
      const query = "ALTER TABLE events DELETE WHERE user_id = 'gone'";
      await service.clickHouse.command({ query }).catch(() => undefined);
    }
  })();
  for (let kill = 0; kill < 3; kill += 1) {
    await eventually(() => followed.length).toBeGreaterThan(kill * 500);
    await engine.kill9();
    await engine.restart();
  }
  const written = (await writing).flat();
  ended = true;
  await Promise.all([following, disturbing]);

  const followedUuids = followed.map(({ uuid }) => uuid);
  expect(new Set(followedUuids).size, HOW_TO_REPEAT).toBe(followedUuids.length);
  const staying = new Set(written.filter(({ userId }) => userId === 'stays').map(({ uuid }) => uuid));
  expect(staying.difference(new Set(followedUuids)), HOW_TO_REPEAT).toEqual(new Set());
  expect(new Set(followedUuids).difference(new Set(written.map(({ uuid }) => uuid)))).toEqual(new Set());
  for (const [index, { place }] of followed.entries()) {
    expect(index === 0 || isPlaceAtLeast(place, followed[index - 1]?.place)).toBe(true);
  }

  // Every event still has the place that it was read at.
  await service.clickHouse.command({ query: 'OPTIMIZE TABLE events FINAL' });
  const later = await follow(service, start, await newest(service));
  expect(later.filter(({ uuid }) => staying.has(uuid))).toEqual(followed.filter(({ uuid }) => staying.has(uuid)));
  await service.stop();
});
