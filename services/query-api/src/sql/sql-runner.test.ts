import { loadConfig } from '@sluice/shared/config';
import { MemoryBudget } from '@sluice/shared/http/memory-budget';
import { Registry } from 'prom-client';
import { afterAll, expect, test } from 'vitest';
import { configSchema } from '../config.ts';
import { QueryMetrics } from '../metrics.ts';
import { HttpClickHouseReader } from '../store/clickhouse-reader.ts';
import { hiddenEvents } from '../store/deletions/hidden-events.ts';
import { ClickHouseException, DeletionsUnknown } from '../store/read-failures.ts';
import { VALUE_CHARACTERS_MAX } from '../store/statement-request.ts';
import { GivenUpStatements, StatementSlot } from '../store/statement-slot.ts';
import { OneStore, RequestStore } from '../store/stores.ts';
import { LOCAL_TABLES, type Tables, tablesOfServers } from '../store/tables.ts';
import { ALL_VISIBLE } from '../testing/all-visible.ts';
import { SHOWS_SCALARS, sqlProblem } from './sql-error.ts';
import { SqlRunner, shownRows } from './sql-runner.ts';

const config = loadConfig(configSchema, { CLICKHOUSE_URL: 'http://127.0.0.1:1', API_KEYS_FILE: 'keys.json' });
const sqlReader = new HttpClickHouseReader(config, { connectionsMax: 1, settings: {} });
const reader = new HttpClickHouseReader(config, { connectionsMax: 1, settings: {}, sqlReader });
afterAll(() => reader.close());

async function problemOf(withSql: boolean, tables: Tables): Promise<unknown> {
  const runner = new SqlRunner({
    config,
    queryRunner: {
      reportSlot: async () => new StatementSlot(() => undefined, 'a', new GivenUpStatements()),
      all: async () => [],
    },
    metrics: new QueryMetrics(new Registry()),
  });
  const store = new OneStore({ name: '', reader: withSql ? reader : sqlReader, tables, visibility: ALL_VISIBLE });
  const memory = new MemoryBudget(64 * 1_024 * 1_024).open({ hash: 'h', workspace: 'a' });
  const context = { workspace: 'a', requestId: 'r', store: new RequestStore(store), memory, span: undefined };
  const bytes = runner.bytes(
    { sql: 'SELECT 1', params: {}, format: 'json' },
    { ...context, signal: new AbortController().signal },
  );
  return await bytes.next().catch((problem: unknown) => problem);
}

test('SQL is off without an account for it, and the problem says how to turn it on', async () => {
  expect(await problemOf(false, LOCAL_TABLES)).toMatchObject({
    code: 'sql_not_available',
    message: expect.stringContaining('CLICKHOUSE_SQL_USER'),
  });
});

test('SQL is refused where servers have ranges: the others would not know the workspace', async () => {
  const ranges = { addresses: ['a:9000', 'b:9000'], tls: false, database: 'd', user: 'u', password: 'p' };
  expect(await problemOf(true, tablesOfServers({ ...ranges, serverOfPartition: [0, 1] }))).toMatchObject({
    code: 'sql_not_available',
    message: expect.stringContaining('ranges'),
  });
  // Of one server, it is sent.
  expect(await problemOf(true, LOCAL_TABLES)).toMatchObject({ code: 'store_unavailable' });
});

test('an accounts.xml of an older version is no fault of the statement', () => {
  const message = `Code: 164. DB::Exception: Cannot modify '${SHOWS_SCALARS}' setting in readonly mode. (READONLY)`;
  expect(sqlProblem(new ClickHouseException(164, message), 'd_sql')).toMatchObject({ code: 'store_unavailable' });
  const other = message.replace(SHOWS_SCALARS, 'max_ast_depth');
  expect(sqlProblem(new ClickHouseException(164, other), 'd_sql')).toMatchObject({ code: 'invalid_sql' });
});

const NO_VISITORS = async () => [];

const NOTHING_HIDDEN = { hiddenCondition: async () => undefined, keptFrom: async () => undefined };

test('a workspace without deletions and retention shows all of its rows', async () => {
  expect(await shownRows('a', NOTHING_HIDDEN, NO_VISITORS)).toEqual({
    ...{ 'x-sluice-workspace': 'a', 'x-sluice-deletions': 'none', 'x-sluice-kept-from': 'all' },
  });
});

test('pending deletions, retention, and deletions of other servers are named', async () => {
  const headers = await shownRows(
    'a',
    {
      hiddenCondition: async () => hiddenEvents,
      keptFrom: async () => 1_767_225_600_000,
      deletionsElsewhere: () => [{ user: 'jäne\r\n', version: 7 }],
      identities: async () => ({ areLinked: true, areMerged: false }),
    },
    async () => [
      { user: '\uffffv', version: 9 },
      { user: 'jäne\r\n', version: 6 },
    ],
  );
  const { 'x-sluice-deleted-users': users = '', ...others } = headers;
  expect(others).toEqual({
    ...{ 'x-sluice-workspace': 'a', 'x-sluice-deletions': 'some', 'x-sluice-kept-from': '1767225600000' },
  });
  expect(JSON.parse(Buffer.from(users, 'base64').toString())).toEqual([
    ['jäne\r\n', 7],
    ['\uffffv', 9],
  ]);
  // No header ends inside of it.
  expect(users).toMatch(/^[A-Za-z0-9+/=]+$/);
});

test('more deletions of other servers than ClickHouse takes in a header are refused before', async () => {
  // Each character of the name has six in JSON, of which base64 makes eight.
  const headersOf = (characters: number) =>
    shownRows(
      'a',
      { ...NOTHING_HIDDEN, deletionsElsewhere: () => [{ user: '\u0001'.repeat(characters), version: 7 }] },
      NO_VISITORS,
    );
  const characters = Math.floor((VALUE_CHARACTERS_MAX - 12) / 8);
  expect((await headersOf(characters))['x-sluice-deleted-users']?.length).toBeGreaterThan(VALUE_CHARACTERS_MAX - 16);
  await expect(headersOf(characters + 1)).rejects.toThrow(DeletionsUnknown);
});
