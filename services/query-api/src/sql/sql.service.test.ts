import type { AddressInfo } from 'node:net';
import { sleep } from '@sluice/shared/base/retry';
import { PINNED_SETTINGS } from '@sluice/shared/clickhouse/settings';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { metric } from '../testing/load.ts';
import { anEvent, aRegister, DELETIONS_FORGOTTEN_MS } from '../testing/query-service.ts';
import { type SqlService, startSql } from '../testing/sql-service.ts';

const START = Date.UTC(2026, 0, 1);

/** It runs until somebody ends it. */
const ENDLESS = 'SELECT sum(cityHash64(number)) FROM numbers(1000000000000000000)';

let service: SqlService;
let url: string;

beforeAll(async () => {
  service = await startSql({ REPORT_CONNECTIONS_MAX: '2', REPORT_CONCURRENCY_PER_WORKSPACE: '1' });
  const paid = { timestampMs: START, event: 'paid' };
  await service.store('a', [
    anEvent({ ...paid, userId: 'jane', groupId: 'acme', properties: '{"plan":"pro","amount":9.5}' }),
    anEvent({ ...paid, userId: 'joe', properties: '{"plan":"free","amount":0.5}' }),
  ]);
  await service.store('b', [anEvent({ timestampMs: START, event: 'secret', userId: 'secret-user' })]);
  await service.app.listen({ port: 0, host: '127.0.0.1' });
  url = `http://127.0.0.1:${(service.app.server.address() as AddressInfo).port}`;
});
afterAll(() => service.stop());

/** Sends a statement over a connection that can be closed. */
async function send(sql: string, workspace: string, signal?: AbortSignal): Promise<Response> {
  return await fetch(`${url}/queries`, {
    method: 'POST',
    headers: { authorization: `Bearer sql-${workspace}`, 'content-type': 'application/json' },
    body: JSON.stringify({ sql, format: 'ndjson' }),
    ...(signal && { signal }),
  });
}

/** Returns how many statements of clients ClickHouse runs. */
async function running(): Promise<number> {
  const query = "SELECT count() AS n FROM system.processes WHERE user = 'sluice_sql'";
  const result = await service.clickHouse.query({ query, format: 'JSONEachRow' });
  const [row] = await result.json<{ n: number }>();
  return Number(row?.n);
}

test('a statement is answered from the events of the workspace of its key', async () => {
  const sql = "SELECT user_id, JSONExtractFloat(properties, 'amount') AS amount FROM events ORDER BY user_id";
  expect(await service.rows(sql)).toEqual([
    { user_id: 'jane', amount: 9.5 },
    { user_id: 'joe', amount: 0.5 },
  ]);
  expect(await service.rows('SELECT event FROM events', 'b')).toEqual([{ event: 'secret' }]);
  expect(await service.rows('SELECT event FROM events', 'c')).toEqual([]);
});

test('what one workspace has asked decides nothing for another one in the same granule', async () => {
  const row = {
    timestamp: START,
    uuid: '0190a0a0-0000-7000-8000-000000000001',
    event: 'e',
    received_at: START * 1_000,
  };
  await service.insert('events', [
    { ...row, workspace_id: 'd', user_id: 'of-d' },
    { ...row, workspace_id: 'e', user_id: 'of-e' },
  ]);
  for (const workspace of ['d', 'e', 'd', 'e']) {
    for (const user of ['of-d', 'of-e']) {
      const found = await service.rows(`SELECT user_id FROM events WHERE user_id = '${user}'`, workspace);
      expect(found).toEqual(user === `of-${workspace}` ? [{ user_id: user }] : []);
    }
  }
});

test('events of a deleted visitor are in no result, and those of users with its anonymous id are', async () => {
  const event = { timestampMs: START, receivedAtUs: START * 1_000, anonymousId: 'v' };
  await service.store('h', [
    anEvent(event),
    anEvent({ ...event, userId: 'jane' }),
    anEvent({ ...event, anonymousId: 'w' }),
  ]);
  const deletion = { workspace_id: 'h', user_id: visitorOf('v'), version: START * 1_000, stored_at: START };
  await service.insert('pending_deletions', [deletion]);
  await sleep(DELETIONS_FORGOTTEN_MS);
  expect(await service.rows('SELECT user_id, anonymous_id FROM events ORDER BY anonymous_id', 'h')).toEqual([
    { user_id: 'jane', anonymous_id: 'v' },
    { user_id: '', anonymous_id: 'w' },
  ]);
});

test('events of the visitors of a deleted user are in no result before these have deletions of their own', async () => {
  const event = { timestampMs: START, receivedAtUs: START * 1_000, event: 'of mia' };
  await service.store('f', [anEvent({ ...event, anonymousId: 'hers' }), anEvent({ ...event, anonymousId: 'theirs' })]);
  const link = { workspace_id: 'f', version: START * 1_000, said: 0 };
  await service.insert('identity_links', [{ ...link, anonymous_id: 'hers', user_id: 'mia' }]);
  const deletion = { workspace_id: 'f', user_id: 'mia', version: START * 1_000, stored_at: START };
  await service.insert('pending_deletions', [deletion]);
  await until('her visitor is hidden', async () => {
    const rows = await service.rows("SELECT anonymous_id FROM events WHERE event = 'of mia'", 'f');
    return JSON.stringify(rows) === '[{"anonymous_id":"theirs"}]';
  });
});

test('a visitor belongs to whom it belongs elsewhere, of this workspace alone, and to no deleted user', async () => {
  const link = (anonymous_id: string, user_id: string, version: number, said = 0, workspace_id = 'g') => ({
    ...{ workspace_id, anonymous_id, user_id, version, said },
  });
  await service.insert('identity_links', [
    link('first', 'ann', 10_000),
    link('first', 'bob', 20_000),
    link('said', 'ann', 10_000),
    link('said', 'bob', 20_000, 1),
    link('taken back', 'ann', 10_000),
    link('taken back', '', 20_000, 1),
    link('of the deleted', 'mia', 10_000),
    link('of both', 'mia', 10_000),
    link('of both', 'bob', 20_000),
    link('of mia, back', 'mia', 90_000),
    link(`${visitorOf('old')}`, 'ann', 10_000, 1),
    link('first', 'foreign', 1, 1, 'h'),
  ]);
  await service.insert('pending_deletions', [{ workspace_id: 'g', user_id: 'mia', version: 50_000, stored_at: START }]);
  await sleep(DELETIONS_FORGOTTEN_MS);
  const row = (anonymous_id: string, user_id: string, ms: number, linked_by = 'event') => ({
    ...{ anonymous_id, user_id, linked_at: new Date(ms).toISOString(), linked_by },
  });
  expect(await service.rows('SELECT * FROM identities ORDER BY anonymous_id', 'g')).toEqual([
    row('first', 'ann', 10),
    row('of both', 'bob', 20),
    row('of mia, back', 'mia', 90),
    row('said', 'bob', 20, 'request'),
  ]);
});

test('of a user who came back, what was set once before the deletion is hidden, and what was set once after it is not', async () => {
  const deletedUs = START * 1_000;
  const user = { workspace_id: 'f', kind: 'user', id: 'back' };
  await service.insert('pending_deletions', [
    { workspace_id: 'f', user_id: 'back', version: deletedUs, stored_at: START },
  ]);
  const seen = { first_seen_at: START + 1, last_seen_at: START + 1, version: deletedUs + 1_000 };
  await service.insert('entities', [{ ...user, other_id: String(deletedUs), ...seen }]);
  await service.insert(
    'entity_properties',
    [
      ['before', deletedUs - 5],
      ['after', deletedUs + 5],
    ].map(([property, acceptedUs]) => ({
      ...user,
      property,
      // As the writer stores what is set once.
      register: aRegister(2_650_000_000_000_000 - Number(acceptedUs), 'set', '"x"'),
    })),
  );
  await sleep(DELETIONS_FORGOTTEN_MS);
  expect(await service.rows('SELECT user_id, properties FROM users', 'f')).toEqual([
    { user_id: 'back', properties: '{"after":"x"}' },
  ]);
});

test('one long integer or lone surrogate takes no other property away; they are what filters take them for', async () => {
  const documents = [
    '{"n":1,"name":"a:99999999999999999999,[-9999999999999999999","wei":18446744073709551616}',
    '{"n":2,"list":[18446744073709551616,-18446744073709551616,3],"name":"x"}',
    String.raw`{"n":3,"name":"\udc00 \\ud800 \u0000 \"y\""}`,
    '{"n":4,"name":"z","id":9007199254740993}',
  ];
  await service.store(
    'g',
    documents.map((json) => anEvent({ timestampMs: START, properties: json, context: json, traits: json })),
  );
  for (const column of ['properties', 'context', 'traits']) {
    const values = `JSONExtractInt(${column}, 'n') AS n, JSONExtractString(${column}, 'name') AS name, JSONExtractFloat(${column}, 'wei') AS wei, JSONExtract(${column}, 'list', 'Array(Float64)') AS list, toString(JSONExtractInt(${column}, 'id')) AS id`;
    expect(await service.rows(`SELECT ${values} FROM events ORDER BY n`, 'g')).toEqual([
      { n: 1, name: 'a:99999999999999999999,[-9999999999999999999', wei: 2 ** 64, list: [], id: '0' },
      { n: 2, name: 'x', wei: 0, list: [2 ** 64, -(2 ** 64), 3], id: '0' },
      { n: 3, name: '\ufffd \\ud800 \0 "y"', wei: 0, list: [], id: '0' },
      { n: 4, name: 'z', wei: 0, list: [], id: '9007199254740993' },
    ]);
  }
});

test('the properties of users and organizations are read beside a long integer or a lone surrogate as well', async () => {
  const seen = { workspace_id: 'h', first_seen_at: START, last_seen_at: START, version: START * 1_000 };
  const values = { name: '"x"', wei: '18446744073709551616', broken: String.raw`"\ud800"` };
  for (const kind of ['user', 'organization']) {
    await service.insert('entities', [{ ...seen, kind, id: 'odd' }]);
    await service.insert(
      'entity_properties',
      Object.entries(values).map(([property, value]) => ({
        ...{ workspace_id: 'h', kind, id: 'odd', property },
        register: aRegister(START * 1_000, 'set', value),
      })),
    );
    const sql = `SELECT JSONExtractString(properties, 'name') AS name, JSONExtractFloat(properties, 'wei') AS wei, JSONExtractString(properties, 'broken') AS broken FROM ${kind}s`;
    expect(await service.rows(sql, 'h')).toEqual([{ name: 'x', wei: 2 ** 64, broken: '\ufffd' }]);
  }
});

test('the views have the expression of readable JSON in themselves: no account, and no restore, needs the function', async () => {
  const query = `SELECT name, position(create_table_query, 'sluice_sql_readable') > 0 AS names FROM system.tables
    WHERE engine = 'View' AND name IN ('events', 'users', 'organizations', 'identities') ORDER BY name`;
  const result = await service.clickHouse.query({ query, format: 'JSONCompactEachRow' });
  expect(await result.json()).toEqual([
    ['events', 0],
    ['identities', 0],
    ['organizations', 0],
    ['users', 0],
  ]);
});

describe('keys', () => {
  const post = async (headers: Readonly<Record<string, string>>) => {
    const payload = { sql: 'SELECT 1' };
    const { statusCode, body } = await service.app.inject({ method: 'POST', url: '/queries', headers, payload });
    return [statusCode, JSON.parse(body).code];
  };

  test('a key without the scope sql is refused, and so is a request without a key', async () => {
    expect(await post({ authorization: 'Bearer a' })).toEqual([403, 'missing_scope']);
    expect(await post({ authorization: 'Bearer nobody' })).toEqual([401, 'unauthorized']);
    expect(await post({})).toEqual([401, 'unauthorized']);
    expect((await service.get('/events', 'sql-a')).status).toBe(403);
  });
});

describe('formats', () => {
  const sql = 'SELECT user_id, timestamp, NULL AS missing, [1, 2] AS list FROM events ORDER BY user_id';

  test('json has the columns and the rows, and tells nothing about what was read', async () => {
    const { headers, text } = await service.post({ sql });
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(JSON.parse(text)).toEqual({
      meta: [
        { name: 'user_id', type: 'String' },
        { name: 'timestamp', type: "DateTime64(3, 'UTC')" },
        { name: 'missing', type: 'Nullable(Nothing)' },
        { name: 'list', type: 'Array(UInt8)' },
      ],
      data: [
        { user_id: 'jane', timestamp: '2026-01-01T00:00:00.000Z', missing: null, list: [1, 2] },
        { user_id: 'joe', timestamp: '2026-01-01T00:00:00.000Z', missing: null, list: [1, 2] },
      ],
      rows: 2,
    });
  });

  test('ndjson has a line for each row', async () => {
    const { headers, text } = await service.post({ sql: 'SELECT user_id FROM events ORDER BY 1', format: 'ndjson' });
    expect([headers['content-type'], text]).toEqual([
      'application/x-ndjson',
      '{"user_id":"jane"}\n{"user_id":"joe"}\n',
    ]);
  });

  test('csv has names first, and an empty field for NULL', async () => {
    const { headers, text } = await service.post({ sql, format: 'csv' });
    expect(headers['content-type']).toBe('text/csv');
    expect(text.split('\n').slice(0, 2)).toEqual([
      '"user_id","timestamp","missing","list"',
      '"jane","2026-01-01T00:00:00.000Z",,"[1,2]"',
    ]);
  });

  test.each([
    ['parquet', 'Parquet', 'application/vnd.apache.parquet'],
    ['arrow', 'ArrowStream', 'application/vnd.apache.arrow.stream'],
  ])('%s can be read back', async (format, clickHouse, type) => {
    const { headers, bytes } = await service.post({
      sql: 'SELECT user_id, timestamp FROM events ORDER BY 1',
      format,
    });
    expect(headers['content-type']).toBe(type);
    const reading = new URL(service.clickHouseUrl);
    reading.search = String(
      new URLSearchParams({
        ...{ ...PINNED_SETTINGS, date_time_output_format: 'iso' },
        ...{ query: 'SELECT * FROM file_sent FORMAT JSONEachRow', file_sent_format: clickHouse },
        file_sent_structure: "user_id String, timestamp DateTime64(3, 'UTC')",
      }),
    );
    const form = new FormData();
    form.append('file_sent', new Blob([new Uint8Array(bytes)]));
    const rows = (await (await fetch(reading, { method: 'POST', body: form })).text()).trim().split('\n');
    expect(rows.map((row) => JSON.parse(row))).toEqual([
      { user_id: 'jane', timestamp: '2026-01-01T00:00:00.000Z' },
      { user_id: 'joe', timestamp: '2026-01-01T00:00:00.000Z' },
    ]);
  });
});

test('a result that becomes too large when a part of it is sent is cut off', async () => {
  const response = await send('SELECT number FROM numbers(1000000000000000000)', 'a');
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow();
});

test('a statement holds a slot of reports, and ends when its client leaves; others go on meanwhile', async () => {
  const leaving = new AbortController();
  const first = send(ENDLESS, 'a', leaving.signal).catch(() => 'left');
  await eventually(running).toBe(1);
  // Of the same workspace, it waits for the slot.
  const waiting = service.rows('SELECT 1 AS one');
  await eventually(() => metric(service, 'sluice_queries{pool="reports",state="waiting"}')).toBe(1);
  expect(await service.rows('SELECT event FROM events', 'b')).toEqual([{ event: 'secret' }]);
  expect((await service.get('/events', 'a')).body.results).toHaveLength(2);
  expect(await running()).toBe(1);
  leaving.abort();
  expect(await first).toBe('left');
  expect(await waiting).toEqual([{ one: 1 }]);
  await eventually(running).toBe(0);
});

test('what a client did wrong is measured as its error', async () => {
  const invalid = () => metric(service, 'sluice_query_duration_seconds_count{kind="sql",outcome="invalid"}');
  await service.rows('SELECT nothing FROM events');
  const before = await invalid();
  for (const sql of ['SELECT nothing FROM events', 'SHOW TABLES', 'SELECT']) await service.rows(sql);
  expect(await invalid()).toBe(before + 3);
});

test('errors say where they are in the statement', async () => {
  const detail = async (sql: string) => (await service.rows(sql)) as { detail: string };
  expect(await detail('SELECT 1 +')).toMatchObject({ detail: expect.stringContaining('failed at position 11') });
  expect(await detail('SELECT\n1 +,')).toMatchObject({ detail: expect.stringContaining('(line 2, col 5)') });
  expect(await detail('SELECT plan FROM users')).toMatchObject({
    detail: 'The SQL cannot be run: Unknown expression identifier `plan`',
    errors: [{ path: 'sql', reason: 'unknown_identifier' }],
  });
});

test.each([
  ['SELECT * FROM `old-events`', 'unknown_table'],
  ['SELECT * FROM "events backup"', 'unknown_table'],
  ['SELECT * FROM my_events', 'unknown_table'],
  ["SELECT 1 WHERE 'a' IN `old-users`", 'unknown_identifier'],
  ["SELECT 1 WHERE 'a' IN test_sql_sq.users", 'unknown_database'],
])('%s: a table that is called almost as a view is not known', async (sql, reason) => {
  const { status, code, errors } = (await service.rows(sql)) as { status: number; code: string; errors: unknown[] };
  expect([status, code, errors]).toEqual([400, 'invalid_sql', [expect.objectContaining({ reason })]]);
});

test('where the views or the account are missing, the store is unavailable', async () => {
  await service.clickHouse.command({ query: 'RENAME TABLE test_sql_sql.users TO test_sql_sql.other' });
  try {
    expect(await service.rows('SELECT * FROM users')).toMatchObject({ status: 503, code: 'store_unavailable' });
  } finally {
    await service.clickHouse.command({ query: 'RENAME TABLE test_sql_sql.other TO test_sql_sql.users' });
  }
  expect(await service.rows('SELECT * FROM users')).toEqual([]);
});
