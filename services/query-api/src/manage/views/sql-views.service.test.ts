import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, startQuery } from '../../testing/query-service.ts';
import { type SqlService, startSql } from '../../testing/sql-service.ts';
import { send } from '../../testing/views.ts';
import { TILE_SQL_BYTES_MAX } from './stored-reports.ts';
import { VIEW_SQL_CHARACTERS_MAX } from './view.ts';

/** A key that may query and send SQL. */
const ANALYST = 'analyst-a';

const SQL = 'SELECT event, count() AS events FROM events GROUP BY event ORDER BY event';

let service: SqlService;

beforeAll(async () => {
  service = await startSql(WEBHOOKS_ACCOUNT);
  const timestampMs = Date.UTC(2026, 0, 1);
  await service.store('a', [
    anEvent({ timestampMs, event: 'paid' }),
    anEvent({ timestampMs, event: 'paid', userId: 'joe' }),
    anEvent({ timestampMs, event: 'tried' }),
  ]);
  await service.store('b', [anEvent({ timestampMs, event: 'secret' })]);
});
afterAll(() => service.stop());

function saveView(sql: string, key = ANALYST) {
  return send(service, 'POST', '/views', { name: 'Events', report: 'sql', parameters: { sql } }, key);
}

/** Saves a statement on a dashboard of its own, and returns the path of the dashboard and that of its tile. */
async function saveTile(sql: string) {
  const { id: view } = (await saveView(sql)).body;
  const dashboard = { name: 'Morning', tiles: [{ view, width: 1 }] };
  const path = `/dashboards/${(await send(service, 'POST', '/dashboards', dashboard)).body.id}`;
  return { view, path, tile: `${path}/tiles/${view}` };
}

async function rowsOf(url: string, key: string) {
  const response = await service.app.inject({ url, headers: { authorization: `Bearer ${key}` } });
  expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'application/x-ndjson']);
  return response.body
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}

test('a tile of SQL has the rows of its workspace, for every key that may read the dashboard', async () => {
  const { view, path, tile } = await saveTile(SQL);
  const rows = [
    { event: 'paid', events: 2 },
    { event: 'tried', events: 1 },
  ];
  expect((await send(service, 'GET', path)).body).toMatchObject({ tiles: [{ view, report: 'sql', name: 'Events' }] });
  const { key } = (await send(service, 'POST', `${path}/links`, { name: 'Screen' }, 'admin-a')).body;
  for (const reader of [ANALYST, 'a', key]) expect(await rowsOf(tile, reader)).toEqual(rows);
  // Its range is that of the statement.
  expect(await rowsOf(`${tile}?range=1h`, 'a')).toEqual(rows);
  expect(JSON.stringify((await send(service, 'GET', path, undefined, key)).body)).not.toContain('SELECT');
  expect((await send(service, 'GET', tile, undefined, 'b')).status).toBe(404);
});

test('a key without the scope sql saves and changes no statement, and may rename its view', async () => {
  expect((await saveView(SQL, 'a')).body.code).toBe('missing_scope');
  const own = `/views/${(await saveView(SQL)).body.id}`;
  const series = { name: 'Chart', report: 'series', parameters: {} };
  const other = `/views/${(await send(service, 'POST', '/views', series)).body.id}`;
  const statement = { parameters: { sql: 'SELECT 1' } };
  for (const [path, change] of [
    [own, statement],
    [own, { report: 'sql' }],
    [other, { report: 'sql', ...statement }],
  ] as const) {
    expect((await send(service, 'PATCH', path, change)).body.code).toBe('missing_scope');
  }
  expect((await send(service, 'PATCH', own, { name: 'Renamed' })).body).toMatchObject({ name: 'Renamed' });
  expect((await send(service, 'PATCH', own, statement, ANALYST)).body).toMatchObject(statement);
  expect((await send(service, 'GET', other)).body).toMatchObject(series);
});

test.each<[object, readonly string[]]>([
  [{}, ['parameters.sql']],
  [{ sql: '  ' }, ['parameters.sql']],
  [{ sql: 'SELECT \0' }, ['parameters.sql']],
  [{ sql: SQL, format: 'csv', range: '7d' }, ['parameters.format', 'parameters.range']],
  [{ sql: 'x'.repeat(VIEW_SQL_CHARACTERS_MAX + 1) }, ['parameters.sql']],
])('of the parameters %j each error is named', async (parameters, paths) => {
  const { status, paths: named } = await send(
    service,
    'POST',
    '/views',
    { name: 'x', report: 'sql', parameters },
    ANALYST,
  );
  expect(status).toBe(400);
  expect([...named].sort()).toEqual([...paths].sort());
});

test('a long statement is saved; one that is refused says so where it is shown', async () => {
  const end = ' FROM numbers(1)';
  const long = `SELECT '${'x'.repeat(VIEW_SQL_CHARACTERS_MAX - end.length - "SELECT ''".length)}'${end}`;
  expect(await rowsOf((await saveTile(long)).tile, 'a')).toHaveLength(1);
  for (const sql of [
    'SELECT * FROM system.processes',
    'SELECT 1 SETTINGS max_threads = 9',
    'DROP TABLE events',
    'SELECT',
  ]) {
    const { tile } = await saveTile(sql);
    const { status, body } = await send(service, 'GET', tile);
    expect([sql, status, body.code]).toEqual([sql, 400, 'invalid_sql']);
  }
});

test('who has a link reads neither the statement nor values of rows in what a tile is refused with', async () => {
  const { path, tile } = await saveTile('SELECT toInt32(event) AS number FROM events');
  const { key } = (await send(service, 'POST', `${path}/links`, { name: 'Screen' }, 'admin-a')).body;
  const { status, body } = await send(service, 'GET', tile, undefined, key);
  expect([status, body.code]).toEqual([400, 'invalid_sql']);
  expect(JSON.stringify(body)).not.toMatch(/toInt32|number|paid|tried/);
});

test('a tile is read whole before it is sent, of at most a mebibyte, also by HEAD', async () => {
  /** Its rows are 1,024 of 1,024 bytes, but some of one more. */
  const ofBytes = async (longer: number) =>
    (await saveTile(`SELECT repeat('x', 1015 + (number < ${longer})) AS x FROM numbers(1024)`)).tile;
  const largest = await ofBytes(0);
  const response = await service.app.inject({ url: largest, headers: { authorization: 'Bearer a' } });
  expect([response.statusCode, response.rawPayload.length]).toEqual([200, TILE_SQL_BYTES_MAX]);
  expect((await send(service, 'HEAD', largest)).status).toBe(200);
  const { status, body } = await send(service, 'GET', await ofBytes(1));
  expect([status, body.code]).toEqual([400, 'query_too_expensive']);
});

test('where SQL is off, a tile of SQL says so', async () => {
  const query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
  try {
    const view = { name: 'Events', report: 'sql', parameters: { sql: SQL } };
    const { id } = (await send(query, 'POST', '/views', view, ANALYST)).body;
    const tiles = [{ view: id, width: 1 }];
    const dashboard = (await send(query, 'POST', '/dashboards', { name: 'Morning', tiles }, ANALYST)).body.id;
    const { status, body } = await send(query, 'GET', `/dashboards/${dashboard}/tiles/${id}`);
    expect([status, body.code]).toEqual([501, 'sql_not_available']);
  } finally {
    await query.stop();
  }
});
