import { readFile } from 'node:fs/promises';
import { WEBHOOKS_ENV } from '@sluice/query-api/testing/webhooks';
import { eventually } from '@sluice/shared/testing/eventually';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { expectAccessible, openConsole, openSignedInConsole } from '../kit/clients/console-page.ts';
import { shown, tabTo, takePicture, violationsOf } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { clickHouseWithSql, SQL_DATABASE, SQL_ENV } from '../kit/sql.ts';

const stack = new AsyncDisposableStack();
let pipeline: Pipeline;
let browser: Browser;

beforeAll(async () => {
  const clickhouse = stack.use(await clickHouseWithSql());
  pipeline = stack.use(
    await startPipeline({
      kafkaBrokers: inject('kafkaBrokers'),
      ...{ clickhouseUrl: clickhouse.url, database: SQL_DATABASE, name: 'consolesql' },
      env: SQL_ENV,
      envOf: { 'query-api': WEBHOOKS_ENV },
    }),
  );
  browser = await sharedBrowser();
  const events = Array.from({ length: 5 }, (_, n) => ({
    event: n < 2 ? 'signed_up' : 'paid',
    properties: { note: '<b>ü</b>' },
  }));
  expect((await pipeline.submit({ foreignUserGroupId: 'acme', events })).status).toBe(202);
  await pipeline.settled(5);
});
afterAll(() => stack.disposeAsync());

const COUNTS = 'SELECT event, count() AS events FROM events GROUP BY event ORDER BY events DESC';

function hashOf(sql: string): string {
  return `#/sql?${new URLSearchParams({ sql })}`;
}

async function runStatement(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Run' }).click();
}

test('a statement is typed and run by keyboard; its address holds it, and runs nothing by itself', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/events');
  await tabTo(page, page.getByRole('link', { name: 'SQL' }));
  await page.keyboard.press('Enter');
  const statement = page.getByLabel('One SELECT');
  await tabTo(page, statement);
  await page.keyboard.press('Control+a');
  await page.keyboard.type(COUNTS);
  await page.keyboard.press('Control+Enter');
  const rows = () => page.getByRole('table', { name: 'Result' }).locator('tr').allInnerTexts();
  await eventually(rows).toEqual(['event\tevents', 'paid\t3', 'signed_up\t2']);
  await shown(page.getByText('2 rows.'));
  const statements: string[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/queries')) statements.push(request.url());
  });
  await page.reload();
  await eventually(() => statement.inputValue()).toBe(COUNTS);
  await shown(page.getByRole('button', { name: 'Run' }));
  expect(await page.getByRole('table', { name: 'Result' }).count()).toBe(0);
  // An address of somebody else fills the form as well, in a page that has run a statement.
  await runStatement(page);
  await eventually(rows).toEqual(['event\tevents', 'paid\t3', 'signed_up\t2']);
  const other = 'SELECT \'=1+1\' AS "2", \'+41\' AS "1", -1 AS n';
  await page.evaluate(`location.assign(${JSON.stringify(hashOf(other))})`);
  await eventually(() => statement.inputValue()).toBe(other);
  expect(await page.getByRole('table', { name: 'Result' }).count()).toBe(0);
  expect(statements).toHaveLength(1);
  await runStatement(page);
  // Columns whose names are whole numbers stay where they are.
  await eventually(rows).toEqual(['2\t1\tn', '=1+1\t+41\t-1']);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download as CSV' }).click();
  expect(await readFile(await (await download).path(), 'utf8')).toBe(`"2","1","n"\n"'=1+1","'+41",-1\n`);
  expect(faults).toEqual([]);
});

test('names are completed by keyboard and written by a click, a result is drawn, and what ran is kept until it is forgotten', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/sql');
  const statement = page.getByLabel('One SELECT');
  await tabTo(page, statement);
  await page.keyboard.press('Control+a');
  await page.keyboard.type('SELECT toDate(time');
  const names = page.getByRole('listbox', { name: 'Names' });
  await shown(names.getByRole('option', { name: 'timestamp' }));
  await takePicture(page, 'sql-completing');
  expect(await violationsOf(page)).toEqual([]);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  expect(await statement.inputValue()).toBe('SELECT toDate(timestamp');
  await page.keyboard.type(') AS day, event, count() AS n FROM eve');
  await page.keyboard.press('Escape');
  // Nobody has chosen one: Enter is a line break, and Tab leaves the box.
  await page.keyboard.type('nts GROUP BY day, eve');
  await page.keyboard.press('Enter');
  expect(await statement.inputValue()).toMatch(/eve\n$/);
  await page.keyboard.press('Backspace');
  await page.keyboard.press('Backspace');
  await page.keyboard.press('Backspace');
  await page.keyboard.press('Backspace');
  const aside = page.getByRole('complementary');
  await aside.getByRole('button', { name: 'event', exact: true }).click();
  expect(await statement.inputValue()).toMatch(/GROUP BY day, event$/);
  await page.keyboard.type(' ORDER BY event');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+Enter');
  await shown(page.getByText('2 rows.'));
  // Two events of one day: bars need one name a row, and lines two days.
  expect(await page.getByRole('region', { name: 'Chart of the result' }).count()).toBe(0);
  await aside.getByRole('link', { name: 'Most frequent events' }).click();
  await runStatement(page);
  const bars = page.getByRole('region', { name: 'Chart of the result' });
  await eventually(() => bars.getByRole('rowheader').allTextContents()).toEqual(['paid', 'signed_up']);
  await page.goto(
    `${pipeline.services['query-api'].url}/console/${hashOf("SELECT toDate('2026-03-01') + number AS day, number AS n FROM numbers(20)")}`,
  );
  await runStatement(page);
  await shown(page.getByRole('img', { name: /The result over time, in UTC/ }).locator('canvas'));
  await expectAccessible(page, 'sql-chart');
  await page.setViewportSize({ width: 390, height: 800 });
  await eventually(() => page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  await takePicture(page, 'sql-390');
  const long = 'Unbreakable'.repeat(18);
  const named = `SELECT concat('${long}', toString(number)) AS "${long}", number + 1 AS n FROM numbers(3)`;
  await page.goto(`${pipeline.services['query-api'].url}/console/${hashOf(named)}`);
  await runStatement(page);
  await eventually(() => bars.getByRole('rowheader').count()).toBe(3);
  await eventually(() => page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  await page.reload();
  const history = aside.getByRole('group').filter({ hasText: 'History of this browser' });
  await eventually(() => history.getByRole('link').count()).toBe(4);
  await history.getByRole('link', { name: /GROUP BY event ORDER BY events DESC/ }).click();
  await eventually(() => statement.inputValue()).toMatch(/^SELECT event, count/);
  await tabTo(page, history.getByRole('button', { name: 'Forget them' }));
  await page.keyboard.press('Enter');
  await eventually(() => history.count()).toBe(0);
  expect(await page.evaluate("localStorage.getItem('sluice-statements')")).toBe(null);
  // Who signs out leaves none behind either.
  await runStatement(page);
  await shown(page.getByText('2 rows.'));
  await page.getByRole('button', { name: 'Sign out' }).click();
  await shown(page.getByRole('heading', { level: 1, name: 'Sign in' }));
  expect(await page.evaluate("localStorage.getItem('sluice-statements')")).toBe(null);
  expect(faults).toEqual([]);
});

test('a statement is saved as a view, a dashboard draws its result, and the view is changed from the page of SQL', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, hashOf(COUNTS));
  await runStatement(page);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByLabel('Name of the view').fill('Events by name');
  await page.getByLabel('on dashboard').selectOption('a new one');
  await page.getByRole('button', { name: 'Save the view' }).click();
  await page.getByRole('status').getByRole('link', { name: 'Events by name' }).click();
  const tile = page.getByRole('region', { name: 'Events by name', exact: true });
  await eventually(() => tile.getByRole('rowheader').allTextContents()).toEqual(['paid', 'signed_up']);
  await takePicture(page, 'sql-tile');
  expect(await violationsOf(page)).toEqual([]);
  await tile.getByRole('link', { name: 'Events by name' }).click();
  const statement = page.getByLabel('One SELECT');
  await eventually(() => statement.inputValue()).toBe(COUNTS);
  await statement.fill('SELECT count() AS n FROM events');
  await runStatement(page);
  const update = page.getByRole('button', { name: 'Update' });
  await shown(update);
  // What ran would be saved, and not what the box has.
  await statement.press('End');
  await statement.pressSequentially(' LIMIT 1');
  await eventually(() => update.count()).toBe(0);
  await runStatement(page);
  await update.click();
  await shown(page.getByText('Saved as'));
  const view = new URLSearchParams(page.url().split('?').at(-1)).get('view');
  await page.goBack();
  await page.goBack();
  await page.goBack();
  await eventually(() => tile.locator('.figure').allTextContents()).toEqual(['5']);
  // A chart does not take the place of the statement.
  const known = page.waitForResponse((response) => response.url().endsWith(`/views/${view}`));
  await page.evaluate(`location.hash = '#/explore?view=${view}'`);
  await (await known).finished();
  await shown(page.getByRole('button', { name: 'Save as a new view' }));
  expect(await update.count()).toBe(0);
  expect(faults).toEqual([]);
});

/** Sends a request to query-api with the key of the pipeline, and returns what it creates. */
async function create(path: string, body: object): Promise<{ readonly id: string; readonly key: string }> {
  const response = await fetch(`${pipeline.services['query-api'].url}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(201);
  return (await response.json()) as { id: string; key: string };
}

/** Creates a dashboard with a statement as its only tile, both of a name, and returns its id. */
async function createDashboard(name: string, sql: string): Promise<string> {
  const { id: view } = await create('views', { name, report: 'sql', parameters: { sql } });
  const { id } = await create('dashboards', { name, tiles: [{ view, width: 1 }] });
  return id;
}

test('a tile says when it was read, on a dashboard and on its wall, while no newer result comes', async () => {
  const dashboard = await createDashboard('Read', COUNTS);
  const { key } = await create(`dashboards/${dashboard}/links`, { name: 'Screen' });
  const wall = await openConsole({ pipeline, browser }, `#/dashboards/${dashboard}?key=${key}`);
  const own = await openSignedInConsole({ pipeline, browser }, '#/views');
  for (const { page, faults } of [wall, own]) {
    await page.clock.install();
    await page.evaluate(`location.hash = '#/dashboards/${dashboard}'`);
    await page.reload();
    const tile = page.getByRole('region', { name: 'Read', exact: true });
    const read = tile.getByText(/^Read /);
    await eventually(() => tile.getByRole('rowheader').allTextContents()).toEqual(['paid', 'signed_up']);
    const title = () => read.getByRole('time').getAttribute('title');
    const at = await title();
    expect(at).toMatch(/\(\d{4}-\d\d-.*Z\)$/);
    // What is asked from now on gets no response.
    await page.route('**/tiles/*', () => undefined);
    await page.clock.fastForward('02:00');
    await eventually(() => read.textContent()).toBe('Read 2 min ago');
    expect(await title()).toBe(at);
    await takePicture(page, page === own.page ? 'sql-tile-read' : 'sql-wall-read');
    expect(faults).toEqual([]);
  }
});

test('a tile of a long result has its first rows, and no chart of a part', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/views');
  const sql = "SELECT toDate('2020-01-01') + number AS day, number AS n FROM numbers(1500)";
  const dashboard = await createDashboard('Long', sql);
  await page.evaluate(`location.hash = '#/dashboards/${dashboard}'`);
  const tile = page.getByRole('region', { name: 'Long', exact: true });
  await shown(tile.getByText('The first 1,000 rows.'));
  await shown(tile.getByRole('table', { name: 'Result' }));
  expect(await tile.locator('canvas').count()).toBe(0);
  expect(faults).toEqual([]);
});

test('the statement of each example runs', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/sql');
  const links = page.getByRole('complementary').getByRole('group').filter({ hasText: 'Examples' }).getByRole('link');
  await shown(links.first());
  for (const link of await links.all()) {
    const sql = new URLSearchParams((await link.getAttribute('href'))?.split('?')[1]).get('sql') ?? '';
    await link.click();
    await eventually(() => page.getByLabel('One SELECT').inputValue()).toBe(sql);
    const ran = page.waitForResponse('**/queries');
    await runStatement(page);
    expect([await link.textContent(), (await ran).status()]).toEqual([await link.textContent(), 200]);
  }
  expect(faults).toEqual([]);
});

test('a long result shows its first rows; the same statement runs again; values are text', async () => {
  const sql = "SELECT number AS n, '<i>x</i>' AS t, 9007199254740993 AS long FROM numbers(100000)";
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, hashOf(sql));
  await runStatement(page);
  await shown(page.getByText('The first 1,000 rows.'));
  const last = page.getByRole('table', { name: 'Result' }).locator('tr').last();
  expect(await last.textContent()).toBe('999<i>x</i>9,007,199,254,740,993');
  const again = page.waitForRequest('**/queries');
  await page.getByRole('button', { name: 'Run' }).click();
  await again;
  await shown(page.getByText('The first 1,000 rows.'));
  expect(faults).toEqual([]);
});

test('a statement that is refused says why, and one that runs long is cancelled', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, hashOf('SELECT nothing FROM events'));
  await runStatement(page);
  const alert = page.getByRole('alert');
  await shown(alert.getByText('The SQL cannot be run: Unknown expression identifier `nothing`'));
  expect((await alert.textContent())?.split('Unknown expression').length).toBe(2);
  await page.route('**/queries', () => undefined);
  await page.getByLabel('One SELECT').fill(COUNTS);
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await shown(page.getByText('Cancelled.'));
  await page.unroute('**/queries');
  await page.getByRole('button', { name: 'Try again' }).click();
  await shown(page.getByText('2 rows.'));
  expect(faults).toEqual([]);
});

test('axe-core finds nothing on the page of SQL', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, hashOf(COUNTS));
  await runStatement(page);
  await shown(page.getByText('2 rows.'));
  await expectAccessible(page, 'sql');
  expect(faults).toEqual([]);
});
