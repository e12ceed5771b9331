import { v1 as uuidV1, v6 as uuidV6, v7 as uuidV7 } from 'uuid';
import { afterAll, expect, inject, test } from 'vitest';
import { createClickHouse } from '../clickhouse/client.ts';
import fc, { sample } from '../testing/fast-check.ts';
import { entityHash, entityHashSql, eventHash, eventHashSql } from './row-hashes.ts';

const client = createClickHouse(
  {
    CLICKHOUSE_URL: inject('clickhouseUrl'),
    CLICKHOUSE_DATABASE: 'default',
    CLICKHOUSE_USER: 'default',
    CLICKHOUSE_PASSWORD: '',
  },
  { application: 'test', requestTimeoutMs: 60_000, connectionsMax: 1 },
);
afterAll(() => client.close());

/** Evaluates SQL for each of the rows, in their order. */
async function evaluate(sql: string, structure: string, rows: readonly object[]): Promise<unknown[]> {
  const result = await client.query({
    query: `SELECT ${sql} FROM format(JSONEachRow, {structure:String}, {rows:String})`,
    query_params: { structure, rows: rows.map((row) => JSON.stringify(row)).join('\n') },
    format: 'JSONCompactEachRow',
  });
  return (await result.json<[unknown]>()).map(([value]) => value);
}

/** The end of the numbers, each digit alone, and the versions of RFC 9562. */
const EDGE_UUIDS = [
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  '01234567-89ab-cdef-fedc-ba9876543210',
  ...Array.from({ length: 32 }, (_, place) => {
    const hex = '0'.repeat(place).concat('8').padEnd(32, '0');
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }),
  ...Array.from({ length: 20 }, () => [uuidV1(), uuidV6(), uuidV7()]).flat(),
];

const EDGE_IDS = [
  '',
  '\0',
  '\0user\0',
  ' ',
  "'\\",
  '\u{1f600}',
  '\u{10ffff}',
  '\ufffd',
  'é',
  'e\u0301',
  'x'.repeat(10_000),
];

const anyText = fc.oneof(
  fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 20 }),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
);

test('ClickHouse computes the hash of an event from its uuid as ingest-api does', async () => {
  const uuids = [...EDGE_UUIDS, ...sample(fc.uuid(), 500)];
  const rows = uuids.map((uuid) => ({ uuid }));
  expect(await evaluate(eventHashSql('uuid'), 'uuid UUID', rows)).toEqual(uuids.map(eventHash));
});

test('ClickHouse computes the hash of a user or an organization as ingest-api does', async () => {
  const ids = [...EDGE_IDS, ...sample(anyText, 500)];
  const rows = ids.map((id, index) => ({
    workspace_id: index % 2 === 0 ? 'a' : 'a.b_c-9',
    kind: index % 3 === 0 ? 'user' : 'organization',
    id,
  }));
  expect(
    await evaluate(
      entityHashSql('workspace_id', 'kind', 'id'),
      'workspace_id LowCardinality(String), kind LowCardinality(String), id String',
      rows,
    ),
  ).toEqual(rows.map((row) => entityHash(row.workspace_id, row.kind, row.id)));
});

test('each of 48 partitions gets its share of uuids that differ in a few digits only, wherever these are', () => {
  const partitions = 48;
  for (let place = 0; place <= 28; place += 2) {
    const counts = new Array<number>(partitions).fill(0);
    for (let number = 0; number < 8_192; number += 1) {
      const hex = '0'.repeat(place).concat(number.toString(16).padStart(4, '0')).padEnd(32, '0');
      const uuid = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
      const partition = eventHash(uuid) % partitions;
      counts[partition] = (counts[partition] ?? 0) + 1;
    }
    expect(Math.max(...counts), `digits ${place} to ${place + 3}`).toBeLessThan(2 * (8_192 / partitions));
    expect(Math.min(...counts), `digits ${place} to ${place + 3}`).toBeGreaterThan(0.4 * (8_192 / partitions));
  }
});
