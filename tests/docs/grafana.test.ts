import { readFile } from 'node:fs/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import jsonata from 'jsonata';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { readClickHouse } from '../kit/clickhouse.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { clickHouseForTools, type PrintedAccount } from '../kit/sql-account.ts';

// Does what docs/guide/grafana.md says: the queries run as the account of `sluice sql-account`, which nothing leads beyond its workspace;
// the Infinity plugin's header and URLs are sent, and its selector is evaluated.

const text = await readFile(new URL('../../docs/guide/grafana.md', import.meta.url), 'utf8');

const workspace = 'acme';

/** Reads the views like the account of the page, but may change every setting: the row policies have to hold by themselves. */
const UNLIMITED = `<clickhouse>
  <profiles><unlimited><readonly>2</readonly></unlimited></profiles>
  <users>
    <unlimited>
      <password>unlimited</password>
      <networks><ip>::/0</ip></networks>
      <profile>unlimited</profile>
      <quota>default</quota>
      <grants><query>GRANT SELECT ON sluice_tools_acme.*</query></grants>
    </unlimited>
  </users>
</clickhouse>`;

const stack = new AsyncDisposableStack();
let clickhouseUrl: string;
let account: PrintedAccount;
let pipeline: Pipeline;
let queries: readonly string[];
let key: string;

beforeAll(async () => {
  const clickhouse = stack.use(await clickHouseForTools([workspace], { 'unlimited.xml': UNLIMITED }));
  account = clickhouse.printed[0] as PrintedAccount;
  clickhouseUrl = clickhouse.url;
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    ...{ clickhouseUrl, name: 'grafana', database: 'sluice' },
    // A deletion stays pending.
    env: { ERASURE_DELAY_MS: '3600000' },
  });
  stack.defer(() => pipeline.stop());
  queries = blocks('sql');
  key = await pipeline.addKey(workspace);
  const other = await pipeline.addKey('other');
  const paid = (userId: string, plan: string, amount: number) => ({
    event: 'paid',
    timestamp: '2026-03-01T12:00:00Z',
    properties: { plan, amount },
    userId,
  });
  for (const { userId, ...event } of [paid('jane', 'pro', 20), paid('joe', 'pro', 5), paid('jim', 'free', 0.5)]) {
    await pipeline.submit({ foreignUserId: userId, foreignUserGroupId: 'g', events: [event] }, { key });
  }
  const secret = { event: 'secret', timestamp: '2026-03-01T12:00:00Z', properties: { secret: 1 } };
  await pipeline.submit(
    { foreignUserId: 'secret-user', foreignUserGroupId: 'secret-group', events: [secret] },
    { key: other },
  );
  await pipeline.settled(3, key);
  await pipeline.settled(1, other);
  await clickhouse.createViews();
});
afterAll(() => stack.disposeAsync());

/** Runs a statement as Grafana does, with its macros replaced. */
async function asGrafana(sql: string, user = account.account): Promise<unknown[][]> {
  const replaced = sql
    .replaceAll('$__fromTime', "toDateTime64('2026-03-01 00:00:00', 3, 'UTC')")
    .replaceAll('$__toTime', "toDateTime64('2026-03-02 00:00:00', 3, 'UTC')")
    .replaceAll('$__timeInterval(timestamp)', 'toStartOfInterval(toDateTime(timestamp), INTERVAL 3600 second)');
  const search = new URLSearchParams({ database: account.account, default_format: 'JSONCompactEachRow' });
  const password = user === account.account ? account.password : 'unlimited';
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const response = await fetch(`${clickhouseUrl}/?${search}`, {
    method: 'POST',
    body: replaced,
    headers: { authorization },
  });
  const body = await response.text();
  if (!response.ok) throw new Error(body);
  return body.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as unknown[]]));
}

test('the queries of the page show the events of the workspace', async () => {
  expect(queries).toHaveLength(4);
  const [byName = '', users = '', byPlan = '', newest = ''] = queries;
  expect(await asGrafana(byName)).toEqual([[expect.any(String), 'paid', 3]]);
  expect(await asGrafana(users)).toEqual([[expect.any(String), 3]]);
  expect(await asGrafana(byPlan)).toEqual([
    ['pro', 2, 25],
    ['free', 1, 0.5],
  ]);
  expect(await asGrafana(newest)).toHaveLength(3);
});

test('the account reads its view and nothing else, writes nothing, and cannot lift its limits', async () => {
  for (const source of [
    ...['sluice.events', 'sluice.pending_deletions', 'system.query_log', 'system.processes', 'system.parts'],
    ...["merge('sluice', '.*')", "remote('127.0.0.1', sluice.events)", "mergeTreeIndex('sluice', 'events')"],
    ...["url('http://127.0.0.1/', 'CSV', 'a String')", "file('a.csv', 'CSV', 'a String')", 'system.row_policies'],
  ]) {
    await expect(asGrafana(`SELECT * FROM ${source}`), source).rejects.toThrow(
      /ACCESS_DENIED|UNKNOWN_TABLE|CANNOT_EXTRACT_TABLE_STRUCTURE/,
    );
  }
  await expect(asGrafana(`INSERT INTO events (event) VALUES ('x')`)).rejects.toThrow(/READONLY|ACCESS_DENIED/);
  await expect(asGrafana('SELECT 1 SETTINGS max_execution_time = 600')).rejects.toThrow('SETTING_CONSTRAINT_VIOLATION');
  expect(await asGrafana('SELECT 1 SETTINGS max_execution_time = 5')).toEqual([[1]]);
  for (const setting of ['use_primary_key = 0', 'max_concurrent_queries_for_user = 0', 'use_skip_indexes = 1']) {
    await expect(asGrafana(`SELECT 1 SETTINGS ${setting}`), setting).rejects.toThrow('READONLY');
  }
  await expect(asGrafana('SELECT 1', `sluice_views_${workspace}`)).rejects.toThrow('AUTHENTICATION_FAILED');
});

test('of forty heavy queries at once, ClickHouse takes no more than the account may run', async () => {
  const heavy = 'SELECT count() FROM events WHERE sleepEachRow(1) = 0';
  const settled = await Promise.allSettled(Array.from({ length: 40 }, () => asGrafana(heavy)));
  const refused = settled.filter(({ status }) => status === 'rejected');
  for (const one of refused) expect(String((one as PromiseRejectedResult).reason)).toContain('TOO_MANY_SIMULTANEOUS');
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThan(40);
});

/** The blocks of a language, as they are written. */
function blocks(language: string): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block = '']) => block);
}

interface DataSource {
  readonly jsonData: { readonly allowedHosts: readonly string[]; readonly httpHeaderName1: string };
  readonly secureJsonData: { readonly httpHeaderValue1: string };
}

/** Sends a URL of the page as the data source of the page does, with Grafana's variables replaced. */
async function asInfinity(url: string, timeZone = 'utc'): Promise<Response> {
  const [source] = (parse(blocks('yaml').join()) as { datasources: DataSource[] }).datasources;
  const { jsonData, secureJsonData } = source as DataSource;
  expect(url.startsWith(`${jsonData.allowedHosts[0]}/`)).toBe(true);
  const variables: Readonly<Record<string, string>> = {
    '__from:date:iso': '2026-02-28T00:00:00.000Z',
    '__to:date:iso': '2026-03-02T00:00:00.000Z',
    __timezone: timeZone,
    SLUICE_KEY: key,
  };
  const withVariables = (template: string) =>
    template.replaceAll(/\$\{(.*?)\}/g, (all, name) => variables[name] ?? all);
  const path = withVariables(url).trim().slice(String(jsonData.allowedHosts[0]).length);
  const headers = { [jsonData.httpHeaderName1]: withVariables(secureJsonData.httpHeaderValue1) };
  return await fetch(`${pipeline.services['query-api'].url}${path}`, { headers });
}

test('the selector of the page makes rows in the order of time of a response of query-api', async () => {
  const [, series = '', names = ''] = blocks('text');
  const [selector = ''] = blocks('jsonata');
  const rows = async (url: string, timeZone?: string): Promise<unknown> => {
    const response = await asInfinity(url, timeZone);
    expect(response.status).toBe(200);
    // Its arrays have properties of their own.
    return JSON.parse(JSON.stringify(await jsonata(selector).evaluate(await response.json())));
  };
  const day = (date: string, name: string, value: number | null) => ({ time: `${date}Z`, series: name, value });
  const [before, on, after] = [
    '2026-02-28T00:00:00.000',
    '2026-03-01T00:00:00.000',
    '2026-03-02T00:00:00.000',
  ] as const;
  expect(await rows(series)).toEqual([day(before, 'paid', 0), day(on, 'paid', 3), day(after, 'paid', 0)]);
  expect(await rows(series, 'Europe/Berlin')).toContainEqual(day('2026-02-28T23:00:00.000', 'paid', 3));
  expect(await rows(series.replace('groupBy=event&groups=10&', ''))).toContainEqual(day(on, 'all', 3));
  const two = series.replace('groupBy=event', 'measure=max:properties.amount&groupBy=properties.plan,properties.none');
  expect(await rows(two)).toEqual([
    ...[day(before, 'pro / null', null), day(before, 'free / null', null)],
    ...[day(on, 'pro / null', 20), day(on, 'free / null', 0.5)],
    ...[day(after, 'pro / null', null), day(after, 'free / null', null)],
  ]);
  expect(await rows(`${series.trim()}&event=nothing`)).toEqual([]);
  expect((await asInfinity(series, 'browser')).status).toBe(400);
  expect(await jsonata('results.event').evaluate(await (await asInfinity(names)).json())).toBe('paid');
  expect(await rows(`${series.trim()}&event[in]=paid,other`)).toHaveLength(3);
});

/** All that an event says, in one text. */
const ALL = "concat(user_id, ' ', organization_id, ' ', event, ' ', properties, ' ', toString(uuid))";

/** Whether a row is not one of those that the account may read. */
const FOREIGN = "(user_id NOT IN ('joe', 'jim'))";

const WITH_VALUES = `toInt64(${ALL}) = 1`;

const AT_FOREIGN_ROWS = `throwIf(${FOREIGN}, 'foreign') = 1`;

/** Expressions that fail at a row, with its values in the message or only if it is a foreign one. */
const EXPRESSIONS: readonly string[] = [
  WITH_VALUES,
  AT_FOREIGN_ROWS,
  ...['toUUID', 'toDate', 'toDateTime64', 'parseDateTimeBestEffort', 'toIPv4', 'JSONExtractInt'].map(
    (name) => `toString(${name}(${ALL}${name === 'toDateTime64' ? ', 3' : ''})) = ''`,
  ),
  `CAST(${ALL}, 'Enum8('a' = 1)') = 'a'`,
  `length(toFixedString(${ALL}, 1)) = 2`,
  `intDiv(1, toUInt8(NOT ${FOREIGN})) = 2`,
  `match(user_id, if(${FOREIGN}, '(', 'a'))`,
  `[1][toInt64(if(${FOREIGN}, ${ALL}, '1'))] = 2`,
  `accurateCast(if(${FOREIGN}, 300, 1), 'UInt8') = 2`,
];

/** Statements that evaluate an expression wherever SQL allows one. */
const STATEMENTS: readonly ((expression: string) => string)[] = [
  (failing) => `SELECT count() FROM events WHERE ${failing}`,
  (failing) => `SELECT count() FROM events PREWHERE ${failing}`,
  (failing) => `SELECT count() FROM events WHERE timestamp > '2026-03-01' AND user_id != '' AND ${failing}`,
  (failing) => `SELECT max(${failing}) FROM events`,
  (failing) => `SELECT user_id FROM events GROUP BY user_id HAVING max(${failing.replace(ALL, 'user_id')})`,
  (failing) => `SELECT user_id FROM events ORDER BY ${failing}`,
  (failing) => `SELECT user_id FROM events ORDER BY ${failing} LIMIT 1`,
  (failing) => `SELECT count() FROM events GROUP BY ${failing}`,
  (failing) => `SELECT user_id FROM events LIMIT 1 BY ${failing}`,
  (failing) => `SELECT DISTINCT ${failing} FROM events`,
  (failing) => `SELECT count() FROM events AS a JOIN numbers(3) AS b ON toUInt64(${failing}) = b.number`,
  (failing) => `SELECT count() FROM numbers(3) AS b LEFT JOIN events AS a ON toUInt64(${failing}) = b.number`,
  (failing) =>
    `SELECT count() FROM events AS a JOIN events AS b ON a.user_id = b.user_id WHERE ${failing.replaceAll(/\b(user_id|organization_id|event|properties|uuid)\b/g, 'b.$1')}`,
  (failing) => `SELECT sum(toUInt8(${failing})) OVER (PARTITION BY event ORDER BY ${failing}) FROM events`,
  (failing) => `SELECT user_id FROM events QUALIFY max(${failing}) OVER () = 1`,
  (failing) => `SELECT count() FROM events ARRAY JOIN [${failing}] AS x`,
  (failing) => `SELECT sumIf(1, ${failing}), uniqIf(user_id, ${failing}) FROM events`,
  (failing) => `SELECT count() FROM numbers(1) WHERE 1 IN (SELECT ${failing} FROM events)`,
  (failing) => `SELECT (SELECT count() FROM events WHERE ${failing})`,
  (failing) => `SELECT count() FROM (SELECT * FROM events UNION ALL SELECT * FROM events) WHERE ${failing}`,
  (failing) => `WITH x AS (SELECT *, ${failing} AS y FROM events) SELECT count() FROM x WHERE y`,
  (failing) => `EXPLAIN PLAN actions = 1, indexes = 1 SELECT count() FROM events WHERE ${failing}`,
  (failing) => `EXPLAIN ESTIMATE SELECT count() FROM events WHERE ${failing}`,
];

/** The settings of the reader without limits: to read every granule, in another order of conditions, with the older planner. */
const CHANGED_SETTINGS: readonly string[] = [
  'use_primary_key = 0, use_skip_indexes = 0',
  'use_primary_key = 0, query_plan_optimize_prewhere = 0, optimize_move_to_prewhere = 0',
  'enable_analyzer = 0, use_primary_key = 0, use_skip_indexes = 0',
];

/** Runs a statement, and returns all that the account sees of it. */
async function seen(sql: string, user?: string): Promise<string> {
  return await asGrafana(sql, user).then(JSON.stringify, (error: Error) => error.message);
}

test('no statement shows a row of another workspace or of a deleted user, in its errors neither', async () => {
  await pipeline.deleteUser('jane', key);
  await eventually(() => asGrafana('SELECT DISTINCT user_id FROM events ORDER BY user_id')).toEqual([['jim'], ['joe']]);
  const [where] = STATEMENTS as [(typeof STATEMENTS)[0]];
  const statements = new Set([
    ...EXPRESSIONS.map(where),
    ...STATEMENTS.flatMap((statement) => [WITH_VALUES, AT_FOREIGN_ROWS].map(statement)),
  ]);
  const shown: string[] = [];
  let failed = 0;
  for (const sql of statements) {
    const changed = CHANGED_SETTINGS.map((settings) => seen(`${sql} SETTINGS ${settings}`, 'unlimited'));
    for (const run of await Promise.all([seen(sql), ...changed])) {
      if (/j(oe|im) g /.test(run)) failed += 1;
      if (/secret|jane|FUNCTION_THROW_IF|ILLEGAL_DIVISION/.test(run)) shown.push(`${sql}\n  ${run}`);
    }
  }
  // The expressions do fail at rows that the account may read, with their values.
  expect(failed).toBeGreaterThan(20);
  expect(shown).toEqual([]);
});

test('the plan of a query does not tell which users other workspaces have', async () => {
  const plan = async (userId: string) =>
    (await seen(`EXPLAIN indexes = 1 SELECT count() FROM events WHERE user_id = '${userId}'`)).replaceAll(userId, '');
  const unknown = await plan('nobody');
  expect(unknown).toContain('Granules');
  expect(await plan('secret-user')).toBe(unknown);
  expect(await plan('jane')).toBe(unknown);
});

test('events that are older than the retention of the workspace, or of all, are not shown', async () => {
  const before = await asGrafana('SELECT count() FROM events');
  const aged = (days: number) => ({
    event: 'aged',
    timestamp: new Date(Date.now() - days * 86_400_000).toISOString(),
  });
  const { status } = await pipeline.submit(
    { foreignUserId: 'joe', foreignUserGroupId: 'g', events: [aged(0), aged(5), aged(40)] },
    { key },
  );
  expect(status).toBe(202);
  await pipeline.settled(Number(before[0]?.[0]) + 3, key);
  const keep = async (name: string, days: number) => {
    await readClickHouse(
      clickhouseUrl,
      `INSERT INTO sluice.retention (workspace_id, days) VALUES ('${name}', ${days})`,
    );
    return await asGrafana("SELECT count() FROM events WHERE event = 'aged'");
  };
  expect(await keep('other', 1)).toEqual([[3]]);
  expect(await keep('', 3)).toEqual([[1]]);
  expect(await keep(workspace, 10)).toEqual([[2]]);
  expect(await keep(workspace, 0)).toEqual([[1]]);
  expect(await keep('', 0)).toEqual([[3]]);
});
