import { readFile } from 'node:fs/promises';
import jsonata from 'jsonata';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { readClickHouse } from '../support/clickhouse.ts';
import { ownClickHouse } from '../support/engines.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';

// Does what docs/grafana.md says: the account is a file of ClickHouse, the view is created by an administrator, and the
// queries run as the account.

const text = await readFile(new URL('../../docs/grafana.md', import.meta.url), 'utf8');

const workspace = 'acme';
const PASSWORD = 'replace-this-password';

const stack = new AsyncDisposableStack();
let clickhouseUrl: string;
let pipeline: Pipeline;
let queries: readonly string[];

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
  const key = await pipeline.addKey(workspace);
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

/** Requests the URL of the page as the Infinity plugin does, with a key that may read alone. */
async function asInfinity(parameters: string, to = '2026-03-02T23:59:59.999Z'): Promise<unknown> {
  const [, shown = ''] = /^https:\/\/query\.example\.com(\/events\/series.*)$/m.exec(text) ?? [];
  const path = shown.replace(/\$\{__from:date:iso\}/, '2026-03-01T00:00:00.000Z').replace(/\$\{__to:date:iso\}/, to);
  const { status, body } = await pipeline.get(path + parameters, await pipeline.addKey(workspace, ['query']));
  expect(status).toBe(200);
  return body;
}

test('the selectors of the Infinity plugin make rows of a series', async () => {
  const [points = '', totals = ''] = [...text.matchAll(/^```jsonata\n(.*?)^```$/gms)].map(([, block = '']) => block);
  const rowsOf = async (selector: string, response: unknown) =>
    JSON.parse(JSON.stringify(await jsonata(selector).evaluate(response)));
  expect(await rowsOf(points, await asInfinity(',properties.plan'))).toEqual([
    { time: '2026-03-01T00:00:00.000Z', series: 'paid, pro', value: 2 },
    { time: '2026-03-02T00:00:00.000Z', series: 'paid, pro', value: 0 },
    { time: '2026-03-01T00:00:00.000Z', series: 'paid, free', value: 1 },
    { time: '2026-03-02T00:00:00.000Z', series: 'paid, free', value: 0 },
  ]);
  // Values of nothing are gaps.
  const averages = await rowsOf(points, await asInfinity('&measure=avg:properties.amount'));
  expect(averages.map(({ value }: { value: unknown }) => value)).toEqual([25.5 / 3, null]);
  // One bucket and one series are a list as well.
  expect(await rowsOf(points, await asInfinity('', '2026-03-01T23:59:59.999Z'))).toEqual([
    { time: '2026-03-01T00:00:00.000Z', series: 'paid', value: 3 },
  ]);
  expect(await rowsOf(totals, await asInfinity(''))).toEqual([{ series: 'paid', total: 3 }]);
});

test('the view leaves out a deleted user at once', async () => {
  const key = await pipeline.addKey(workspace);
  await pipeline.deleteUser('jane', key);
  await expect.poll(() => asGrafana('SELECT DISTINCT userId FROM events ORDER BY userId')).toEqual([['jim'], ['joe']]);
});
