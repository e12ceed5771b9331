import { once } from 'node:events';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { ClickHouseReader, Row, RowBatches } from '../../store/clickhouse-reader.ts';
import { metric, openRequest } from '../../testing/load.ts';
import { aRegister, type QueryService, startQuery } from '../../testing/query-service.ts';
import { readerWith } from '../../testing/reader-with.ts';
import { PIECE_BYTES_MAX } from './pieces.ts';

// Users and organizations of up to megabytes: what query-api holds of them at a time.

const USERS = 12;
/** Its properties have more bytes together than one query may return. */
const LARGE = 'u05';
const VALUE = 'x'.repeat(240_000);

let query: QueryService;
/** The bytes of the rows of each query since the test began. */
let results: { bytes: number }[];

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { QUERY_CONCURRENCY_PER_WORKSPACE: '1' }, measured);
  await query.app.listen({ host: '127.0.0.1', port: 0 });
  for (const kind of ['user', 'organization']) {
    for (const [index, id] of ids.entries()) {
      const entity = { workspace_id: 'a', kind, id };
      // The order of times is not that of identifiers.
      const seenAt = 1_000_000 + ((index * 5) % USERS) * 1_000;
      await query.insert('entities', [{ ...entity, first_seen_at: seenAt, last_seen_at: seenAt, version: 5 }]);
      const registers = Object.entries(propertiesOf(id)).map(([property, value]) => {
        return { ...entity, property, register: aRegister(5, 'set', JSON.stringify(value)) };
      });
      await query.insert('entity_properties', registers);
    }
  }
});
afterAll(() => query.stop());

const ids = Array.from({ length: USERS }, (_, index) => `u${String(index).padStart(2, '0')}`);

function propertiesOf(id: string): Record<string, string> {
  const names = Array.from({ length: id === LARGE ? 14 : 4 }, (_, index) => `p${String(index).padStart(2, '0')}`);
  return {
    ...Object.fromEntries(names.map((name) => [name, id + VALUE])),
    parity: Number(id.slice(1)) % 2 ? 'odd' : 'even',
  };
}

function measured(reader: ClickHouseReader): ClickHouseReader {
  return readerWith(reader, { read: (request) => counted(reader.read(request)) });
}

async function* counted(batches: RowBatches): RowBatches {
  const result = { bytes: 0 };
  results?.push(result);
  for await (const rows of batches) {
    result.bytes += bytesOf(rows);
    yield rows;
  }
}

function bytesOf(rows: readonly Row[]): number {
  return Buffer.byteLength(JSON.stringify(rows));
}

const PATHS = [
  { path: '/users', idName: 'foreignId' },
  { path: '/organizations', idName: 'foreignUserGroupId' },
] as const;
const byTime = ids.toSorted(
  (one, other) => ((Number(one.slice(1)) * 5) % USERS) - ((Number(other.slice(1)) * 5) % USERS),
);
const odd = (id: string) => Number(id.slice(1)) % 2 === 1;
const LISTS = [
  { parameters: 'limit=200', expected: ids },
  { parameters: 'limit=200&orderByDirection=DESC', expected: ids.toReversed() },
  { parameters: 'limit=200&orderByField=lastSeenAt&orderByDirection=DESC', expected: byTime.toReversed() },
  { parameters: 'limit=2&orderByField=firstSeenAt', expected: byTime },
  { parameters: 'limit=5&properties.parity=odd', expected: ids.filter(odd) },
  { parameters: 'limit=1&orderByField=lastSeenAt&properties.parity=odd', expected: byTime.filter(odd) },
];

test.each(PATHS.flatMap((route) => LISTS.map((list) => ({ ...route, ...list }))))(
  '$path?$parameters has all large records, and no query returns more than a piece of them',
  async ({ path, idName, parameters, expected }) => {
    results = [];
    const found: Record<string, unknown>[] = [];
    let cursor = '';
    do {
      const { status, body } = await query.get(`${path}?${parameters}${cursor}`);
      expect(status).toBe(200);
      found.push(...body.results);
      cursor = body.nextCursor ? `&cursor=${body.nextCursor}` : '';
    } while (cursor !== '');
    expect(found.map(({ [idName]: id }) => id)).toEqual(expected);
    // toEqual would print megabytes.
    const isWhole = (record: Record<string, unknown>) =>
      JSON.stringify(record['properties']) === JSON.stringify(sorted(propertiesOf(record[idName] as string)));
    expect(found.every(isWhole)).toBe(true);
    expect(Math.max(...results.map(({ bytes }) => bytes))).toBeLessThanOrEqual(PIECE_BYTES_MAX);
  },
);

function sorted(properties: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(properties).sort(([one], [other]) => (one < other ? -1 : 1)));
}

test('a large user is read in pieces', async () => {
  results = [];
  const { status, body } = await query.get(`/users/${LARGE}?propertyTimes=true`);
  expect(status).toBe(200);
  const { properties, propertiesSetAt } = body as unknown as Record<string, Record<string, string>>;
  expect(Object.keys(propertiesSetAt ?? {})).toEqual(Object.keys(properties ?? {}));
  expect(JSON.stringify(properties) === JSON.stringify(sorted(propertiesOf(LARGE)))).toBe(true);
  expect(Math.max(...results.map(({ bytes }) => bytes))).toBeLessThanOrEqual(PIECE_BYTES_MAX);
});

test('a client that does not read keeps the turn of its workspace until it leaves', async () => {
  results = [];
  const request = openRequest(query, '/users?limit=200');
  const [response] = await once(request, 'response');
  const held = () => metric(query, 'sluice_queries{pool="entities",state="running"}');
  const waiting = () => metric(query, 'sluice_queries{pool="entities",state="waiting"}');
  expect(await held()).toBe(1);
  const other = query.get('/users?limit=1');
  await eventually(() => waiting()).toBe(1);
  response.destroy();
  expect((await other).status).toBe(200);
  await eventually(() => held()).toBe(0);
});
