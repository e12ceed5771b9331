import { readFile } from 'node:fs/promises';
import jsonata from 'jsonata';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { readClickHouse } from '../support/clickhouse.ts';
import { ownClickHouse } from '../support/engines.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';

// Does what docs/grafana.md says: the account is a file of ClickHouse, the view is created by an administrator, and the
// queries run as the account; the Infinity plugin's header and URLs are sent, and its selector is evaluated.

const text = await readFile(new URL('../../docs/grafana.md', import.meta.url), 'utf8');

const workspace = 'acme';
const PASSWORD = 'replace-this-password';

const stack = new AsyncDisposableStack();
let clickhouseUrl: string;
let pipeline: Pipeline;
let queries: readonly string[];
let key: string;

beforeAll(async () => {
  const [, account = ''] = /^```xml\n(.*?)^```$/ms.exec(text) ?? [];
  const clickhouse = stack.use(await ownClickHouse({ usersFiles: { 'grafana_acme.xml': account } }));
  clickhouseUrl = clickhouse.url;
  pipeline = await startPipeline({ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl, name: 'grafana' });
  stack.defer(() => pipeline.stop());
  const sql = [...text.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, block = '']) =>
    block.replaceAll('sluice.', `${pipeline.database}.`),
  );
  queries = sql.filter((block) => block.startsWith('SELECT'));
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
  await pipeline.submit(
    { foreignUserGroupId: 'g', events: [{ event: 'secret', timestamp: '2026-03-01T12:00:00Z' }] },
    { key: other },
  );
  await pipeline.settled(3, key);
  await pipeline.settled(1, other);
  const statements = sql.filter((block) => !block.startsWith('SELECT')).flatMap((block) => block.split(/;\n/));
  for (const statement of statements) if (statement.trim() !== '') await readClickHouse(clickhouseUrl, statement);
});
afterAll(() => stack.disposeAsync());

/** Runs a statement as Grafana does, with its macros replaced. */
async function asGrafana(sql: string): Promise<unknown[][]> {
  const replaced = sql
    .replaceAll('$__fromTime', "toDateTime64('2026-03-01 00:00:00', 3, 'UTC')")
    .replaceAll('$__toTime', "toDateTime64('2026-03-02 00:00:00', 3, 'UTC')")
    .replaceAll('$__timeInterval(timestamp)', 'toStartOfInterval(toDateTime(timestamp), INTERVAL 3600 second)');
  const search = new URLSearchParams({ database: `dashboards_${workspace}`, default_format: 'JSONCompactEachRow' });
  const authorization = `Basic ${Buffer.from(`grafana_${workspace}:${PASSWORD}`).toString('base64')}`;
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
  const { database } = pipeline;
  await expect(asGrafana(`SELECT count() FROM ${database}.events`)).rejects.toThrow('ACCESS_DENIED');
  await expect(asGrafana(`INSERT INTO events (event) VALUES ('x')`)).rejects.toThrow(/READONLY|ACCESS_DENIED/);
  await expect(asGrafana('SELECT 1 SETTINGS max_execution_time = 60')).rejects.toThrow('SETTING_CONSTRAINT_VIOLATION');
  expect(await asGrafana('SELECT 1 SETTINGS max_execution_time = 5')).toEqual([[1]]);
});

/** The blocks of a language, as they are written. */
const blocks = (language: string): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block = '']) => block);

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
  const [series = '', names = ''] = blocks('text');
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

test('the view leaves out a deleted user at once', async () => {
  await pipeline.deleteUser('jane', key);
  await expect.poll(() => asGrafana('SELECT DISTINCT userId FROM events ORDER BY userId')).toEqual([['jim'], ['joe']]);
});
