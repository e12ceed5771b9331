import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import {
  expectAccessible,
  type Look,
  looks,
  openConsole,
  openMore,
  openSignedInConsole,
  tourOf,
} from '../kit/clients/console-page.ts';
import { overflowOf, shown, tabTo, takePicture, violationsOf } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import type { EventPage } from '../kit/records.ts';

interface LookedAt {
  readonly hash: string;
  /** Its heading. */
  readonly shows: string;
  /** A part of it that is loaded. */
  readonly part: string;
}

/** Pages that the other files of the console do not look at. */
const PAGES: Readonly<Record<string, LookedAt>> = {
  events: {
    hash: '#/events?event=signed_up&properties.plan%5Bin%5D=pro%2Cfree',
    ...{ shows: 'Events', part: 'table.events' },
  },
  organizations: {
    hash: '#/organizations?properties.tier=gold',
    ...{ shows: 'Organizations', part: 'table.events' },
  },
  pipeline: { hash: '#/pipeline', shows: 'Pipeline', part: 'dl.figures' },
};

/** Other states of pages that they do look at. */
const OTHER_STATES: Readonly<Record<string, LookedAt>> = {
  user: { hash: '#/users/jane%2Fdoe', shows: 'jane/doe', part: 'ol.timeline' },
  organization: { hash: '#/organizations/acme', shows: 'acme', part: 'ol.timeline' },
  users: { hash: '#/users', shows: 'Users', part: 'table.events' },
  chart: {
    hash: '#/chart?startDate=2026-01-01&endDate=2026-01-20&groupBy=event&compare=previous',
    ...{ shows: 'Explore', part: '.chart canvas' },
  },
};

const DAY_MS = 86_400_000;

let pipeline: Pipeline;
let browser: Browser;

beforeAll(async () => {
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'console',
    // Many tests wait for their rows.
    env: { BATCH_AGE_MS: '300', STREAM_INTERVAL_MS: '50' },
  });
  browser = await sharedBrowser();
  const events = Array.from({ length: 120 }, (_, index) => ({
    event: index % 3 === 0 ? 'signed_up' : 'paid',
    timestamp: new Date(Date.UTC(2026, 0, 1 + (index % 20), index % 24)).toISOString(),
    properties: { plan: index % 2 === 0 ? 'pro' : 'free', amount: index },
  }));
  const submission = { foreignUserGroupId: 'acme', foreignUserId: 'jane/doe', events, properties: { tier: 'gold' } };
  expect((await pipeline.submit(submission)).status).toBe(202);
  await pipeline.settled(120);
  await pipeline.drained();
});
afterAll(() => pipeline?.stop());

const open = (hash?: string, look?: Look) => openConsole({ pipeline, browser }, hash, look);
const openSignedIn = (hash?: string, look?: Look) => openSignedInConsole({ pipeline, browser }, hash, look);

test('a wrong key is refused; a right one is kept for the tab, and gone after signing out', async () => {
  const { page, context, faults } = await open('#/events');
  await shown(page.getByLabel('API key'));
  expect(await violationsOf(page)).toEqual([]);
  await takePicture(page, 'sign-in-light');
  await page.getByLabel('API key').fill('wrong');
  await page.keyboard.press('Enter');
  await shown(page.getByRole('alert'));
  await page.getByLabel('API key').fill(pipeline.key);
  await page.keyboard.press('Enter');
  await shown(page.getByRole('table'));
  await page.reload();
  await shown(page.getByRole('table'));
  expect(await page.evaluate('[Object.keys(localStorage), document.cookie]')).toEqual([[], '']);
  const other = await context.newPage();
  await other.goto(page.url());
  await shown(other.getByLabel('API key'));
  await page.getByRole('button', { name: 'Sign out' }).click();
  await shown(page.getByLabel('API key'));
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  expect(faults).toEqual([]);
});

test('events are filtered, paged and read by keyboard alone', async () => {
  const { page, faults } = await openSignedIn('#/events?limit=10');
  await tabTo(page, page.getByLabel('Event', { exact: true }));
  await page.keyboard.type('paid');
  await tabTo(page, page.getByRole('button', { name: 'Add a filter' }));
  await page.keyboard.press('Enter');
  // The new filter has the focus, and goes on with Tab.
  await page.keyboard.type('amount');
  await page.keyboard.press('Tab');
  await page.keyboard.type('>');
  await page.keyboard.press('Tab');
  await page.keyboard.type('20');
  await page.keyboard.press('Enter');
  await shown(page.getByText('10 of 66 events.'));
  const query = 'event=paid&properties.amount[gt]=20&limit=10';
  expect(decodeURIComponent(new URL(page.url()).hash)).toBe(`#/events?${query}`);
  const { body } = await pipeline.get<EventPage>(`/events?${query}`);
  const rows = page.getByRole('row').filter({ has: page.getByRole('rowheader') });
  const amounts = async () => (await rows.allInnerTexts()).map((text) => Number(/amount (\d+)/.exec(text)?.[1]));
  await eventually(amounts).toEqual(body.results.map(({ properties }) => properties['amount']));

  // All are of one type, so no column says it.
  await eventually(() => page.getByRole('columnheader').allTextContents()).toEqual([
    ...['Time', 'Event', 'User', 'Organization', 'Properties'],
  ]);
  const focused = () => page.evaluate("document.activeElement.dataset.event ?? ''");
  await page.locator('main').focus();
  for (const [key, place] of [
    ['j', 0],
    ['j', 1],
    ['k', 0],
    ['k', 0],
  ] as const) {
    await page.keyboard.press(key);
    expect(await focused()).toBe(body.results[place]?.uuid);
  }
  await page.keyboard.press('Enter');
  const [first] = body.results;
  await shown(page.getByRole('region', { name: 'Event', exact: true }).getByText(first?.uuid ?? '', { exact: true }));
  await page.keyboard.press('Escape');

  await tabTo(page, page.getByRole('link', { name: 'Next page' }));
  await page.keyboard.press('Enter');
  const next = await pipeline.get<EventPage>(`/events?${query}&cursor=${body.nextCursor}`);
  await eventually(amounts).toEqual(next.body.results.map(({ properties }) => properties['amount']));

  await tabTo(page, page.locator('tbody th a').first());
  await page.keyboard.press('ArrowRight');
  // The focus moves with the page, also where a busy browser runs what waits for the next frame late.
  await page.evaluate('requestAnimationFrame = () => 0; setTimeout = () => 0');
  await page.keyboard.press('Enter');
  await shown(page.getByRole('heading', { level: 1, name: 'jane/doe' }));
  expect(await page.evaluate('document.activeElement.id')).toBe('main');
  expect(faults).toEqual([]);
});

test('what a list shows is saved as CSV', async () => {
  const { page, faults } = await openSignedIn('#/events?event=paid&limit=3');
  const save = async (name: string) => {
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name }).click();
    return (await readFile(await (await download).path(), 'utf8')).trimEnd().split('\n');
  };
  const [head, ...rows] = await save('These events as CSV');
  expect(head).toContain('"uuid"');
  const { body } = await pipeline.get<EventPage>('/events?event=paid&limit=3');
  expect(rows.map((row) => body.results.findIndex(({ uuid }) => row.includes(`"${uuid}"`)))).toEqual([0, 1, 2]);
  await page.goto(page.url().replace(/#.*/, '#/organizations'));
  const organizations = await save('These organizations as CSV');
  expect(organizations[0]).toContain('"foreignUserGroupId"');
  expect(faults).toEqual([]);
});

test('the faults of a filter are all said', async () => {
  const { page } = await openSignedIn('#/events?startDate=never&nonsense=1');
  await eventually(() => page.getByRole('alert').textContent()).toMatch(/startDate.*nonsense|nonsense.*startDate/s);
});

test('a page of a user or an organization has its properties, its members and its newest events', async () => {
  const { page, faults } = await openSignedIn('#/organizations/acme');
  await shown(page.getByRole('row', { name: /^tier "gold"/ }));
  await page.getByRole('region', { name: 'Users' }).getByRole('link', { name: 'jane/doe' }).click();
  await shown(page.getByRole('region', { name: 'Organizations' }).getByRole('link', { name: 'acme' }));
  await shown(page.getByRole('region', { name: 'Events' }).getByRole('link', { name: 'paid' }).first());
  await page.goto(`${pipeline.services['query-api'].url}/console/#/users/nobody`);
  await eventually(() => page.getByRole('alert').textContent()).toBe('There is no such user.');
  expect(faults).toEqual([]);
});

test('organizations are filtered by a property, and a user is opened by identifier, by keyboard', async () => {
  const { page, faults } = await openSignedIn('#/organizations?properties.tier=silver');
  await shown(page.getByText('None match.'));
  await page.goto(`${pipeline.services['query-api'].url}/console/#/organizations?properties.tier=gold`);
  await shown(page.getByRole('row', { name: /^acme .*tier gold/ }));
  await tabTo(page, page.getByRole('link', { name: 'Users', exact: true }));
  await page.keyboard.press('Enter');
  await shown(page.getByRole('row', { name: /^jane\/doe/ }));
  await tabTo(page, page.getByLabel('Identifier', { exact: true }));
  await page.keyboard.type('jane/doe');
  await page.keyboard.press('Enter');
  await shown(page.getByRole('heading', { level: 1, name: 'jane/doe' }));
  expect(faults).toEqual([]);
});

test('the page of the pipeline has what ingest-api and the writer say', async () => {
  const { page, faults } = await openSignedIn('#/settings');
  await page.clock.install();
  await page.goto(`${pipeline.services['query-api'].url}/console/#/pipeline`);
  // The page reads again every ten seconds.
  const reading = async <Read>(read: () => Promise<Read>) => {
    await page.clock.fastForward(10_000);
    return await read();
  };
  const figures = async () => {
    const cells = await page.locator('.figures dt, .figure').allInnerTexts();
    return Object.fromEntries(cells.flatMap((term, index) => (index % 2 === 0 ? [[term, cells[index + 1]]] : [])));
  };
  await page.locator('summary', { hasText: 'Zero: ' }).click();
  await eventually(figures).toEqual({
    ...{ Accepted: '120', Lag: '0', 'Dead letters': '0', 'Last batch': expect.any(String) },
    ...{ 'Halted partitions': '0', 'Failed batches': expect.any(String), 'Rows that could not be stored': '0' },
    'Free on the disk default': expect.stringMatching(/ [MGT]B$/),
    'Fullest partition': expect.stringMatching(/^[1-9]/),
    ...{ 'Pending mutations': '0', 'Pending erasures': '0' },
    ...{ 'Keys file': 'valid', 'Without a backup for': expect.stringMatching(/^\d/) },
  });
  await writeFile(pipeline.keysFile, '{');
  const attention = page.getByText('The keys file cannot be used; the last valid keys stay in force.');
  await until('the faulty file to be noticed', () => reading(() => attention.isVisible()));
  await shown(page.getByRole('alert').getByText('needs attention'));
  expect(await violationsOf(page)).toEqual([]);
  await takePicture(page, 'pipeline-attention');
  await pipeline.addKey('other');
  await eventually(() => reading(figures)).toMatchObject({ 'Keys file': 'valid' });
  expect(faults).toEqual([]);
});

/** Stores an audit of the day before today, in UTC, with its books of that day and the differences that it has found. */
async function auditYesterday(counts: Readonly<Record<string, number>>, lost: readonly string[] = []): Promise<void> {
  const insert = (table: string, row: object) =>
    readClickHouse(inject('clickhouseUrl'), `INSERT INTO ${table} FORMAT JSONEachRow ${JSON.stringify(row)}`, {
      database: pipeline.database,
    });
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const [since, until, hour] = [today - DAY_MS, today, today - DAY_MS / 2].map((ms) => ms / 1_000);
  const id = randomUUID();
  const books = { workspace_id: 'test', kind: 'events', audit_id: id };
  const where = {
    topic: 'sluice.events',
    partition: 7,
    offset: 4_711,
    line: 2,
    detail: 'The log has it, no table does.',
  };
  await insert('audits', { id, since, until, shares: 1, finished_at: Date.now() * 1_000 });
  await insert('audited_hours', { ...books, hour, ...counts });
  for (const key of lost) await insert('audit_differences', { ...books, hour, difference: 'missing', key, ...where });
}

test('the page of the pipeline says whether all that was accepted is accounted for, and what is not', async () => {
  const { page, faults } = await openSignedIn('#/pipeline');
  await shown(page.getByText('No audit has looked yet'));
  await shown(page.getByText('sluice audit', { exact: true }));
  await auditYesterday({ accepted: 12_345_678, stored: 12_345_678 });
  await page.reload();
  const events = /^12,345,678 events accepted (yesterday|on .*) \(UTC\)/;
  await shown(page.getByText(new RegExp(`${events.source}, all accounted for\\.$`)));
  expect(await page.getByText('do not balance').count()).toBe(0);

  const lost = Array.from({ length: 12 }, () => randomUUID());
  await auditYesterday({ accepted: 12_345_678, stored: 12_345_666, missing: 12 }, lost);
  await page.reload();
  await shown(page.getByRole('alert').getByText('One thing needs attention.'));
  await shown(page.getByText('Rows that do not balance: 12 missing.'));
  await shown(page.getByText(new RegExp(`${events.source}; not all rows are accounted for\\.$`)));
  const table = page.getByRole('table', { name: 'The first 10 of 12 rows that do not balance' });
  const rows = table.locator('tbody').getByRole('row');
  expect(await rows.count()).toBe(10);
  expect(lost).toContain(await rows.first().getByRole('rowheader').textContent());
  await shown(rows.first().getByText('sluice.events, partition 7, offset 4711, line 2'));
  expect(await violationsOf(page)).toEqual([]);
  await takePicture(page, 'pipeline-differences');
  await page.setViewportSize({ width: 360, height: 740 });
  await eventually(() => overflowOf(page)).toBe(0);
  expect(await violationsOf(page)).toEqual([]);

  // A later audit finds the rows.
  await auditYesterday({ accepted: 12_345_678, stored: 12_345_678 });
  await page.reload();
  await shown(page.getByText(new RegExp(`${events.source}, all accounted for\\.$`)));
  expect(await page.getByText('do not balance').count()).toBe(0);
  expect(faults).toEqual([]);
});

const tour = tourOf(() => ({ pipeline, browser }));

const lookedAt = looks(Object.entries(PAGES), Object.entries(OTHER_STATES));

test.each(lookedAt)('axe-core finds nothing on the page %s', async (name, { hash, shows, part }) => {
  const { page, faults } = await tour.show(hash);
  await shown(page.getByRole('heading', { level: 1, name: shows }));
  await shown(page.locator(part).first());
  await expectAccessible(page, name);
  expect(faults).toEqual([]);
});

test('the live tail shows what is stored, that matches, and nothing twice', async () => {
  const { page, faults } = await openSignedIn('#/events?event%5Bprefix%5D=live');
  await page.getByRole('switch', { name: 'Live tail' }).press('Space');
  await shown(page.getByText('Live: new events appear at the top.'));
  const names = ['live_1', 'other', 'live_2'];
  for (const event of names) {
    const submission = { foreignUserGroupId: 'acme', events: [{ event, properties: { n: 1 } }] };
    expect((await pipeline.submit(submission)).status).toBe(202);
  }
  const eventNames = async () => (await page.getByRole('rowheader').allTextContents()).toSorted();
  await eventually(eventNames).toEqual(['live_1', 'live_2']);
  await pipeline.services['query-api'].stop();
  await shown(page.getByText('The connection was lost'));
  await pipeline.restart('query-api');
  await shown(page.getByText('Live: new events appear at the top.'));
  expect((await pipeline.submit({ foreignUserGroupId: 'acme', events: [{ event: 'live_3' }] })).status).toBe(202);
  await eventually(eventNames).toEqual(['live_1', 'live_2', 'live_3']);
  await page.getByRole('switch', { name: 'Live tail' }).press('Space');
  expect(await eventNames()).toEqual(['live_1', 'live_2', 'live_3']);
  expect(faults).toEqual([]);
});

test('the live tail shows once what a stream repeats when it goes on at another server', async () => {
  const { page, faults } = await openSignedIn('#/events?event%5Bprefix%5D=moved');
  const { body } = await pipeline.get<EventPage>('/events?limit=1', pipeline.key);
  const dataOf = (event: string) => `data: ${JSON.stringify({ ...body.results[0], uuid: randomUUID(), event })}\n\n`;
  const [repeated, later] = [dataOf('moved_1'), dataOf('moved_2')];
  const moved = 'event: moved\ndata: {"from":"a1","to":"a2","since":"2026-03-01T12:00:00.000Z"}\n\n';
  const stream = `id: a\n${repeated}id: b\n${moved}id: c\n${repeated}id: d\n${later}`;
  await page.route('**/events/stream?*', (route) => route.fulfill({ contentType: 'text/event-stream', body: stream }));
  await page.getByRole('switch', { name: 'Live tail' }).press('Space');
  await shown(page.getByRole('rowheader', { name: 'moved_2' }));
  expect((await page.getByRole('rowheader').allTextContents()).toSorted()).toEqual(['moved_1', 'moved_2']);
  expect(faults).toEqual([]);
});

interface SeriesBody {
  readonly buckets: readonly string[];
  readonly series: readonly { readonly group: readonly string[]; readonly total: number; readonly values: number[] }[];
  readonly total: number;
}

test('a chart has the numbers of GET /events/series, in the time zone of the browser', async () => {
  const query = 'groupBy=properties.plan&interval=day';
  const { page, faults } = await openSignedIn(`#/chart?startDate=2026-01-01&endDate=2026-01-21&${query}`);
  const days = 'startDate=2025-12-31T23:00:00Z&endDate=2026-01-21T22:59:59.999Z';
  const { body } = await pipeline.get<SeriesBody>(`/events/series?${days}&${query}&timeZone=Europe/Berlin`);
  expect(body.total).toBe(120);
  await shown(page.locator('.chart canvas'));
  await openMore(page);
  await page.getByText('All numbers', { exact: true }).focus();
  await page.keyboard.press('Enter');
  const rows = page.getByRole('table', { name: 'Every day of the chart' }).locator('tbody tr');
  await shown(rows.first());
  const numbers = await rows.evaluateAll((all) =>
    all.map((row) => [
      row.querySelector('time')?.getAttribute('datetime'),
      ...[...row.querySelectorAll('td')].map((cell) => Number(cell.textContent)),
    ]),
  );
  expect(numbers).toEqual(
    body.buckets.map((bucket, index) => [bucket, ...body.series.map(({ values }) => values[index])]),
  );
  const totals = await page
    .getByRole('table', { name: /^Totals/ })
    .locator('td')
    .allTextContents();
  expect(totals.map(Number)).toEqual([...body.series.map(({ total }) => total), body.total]);
  expect(faults).toEqual([]);
});

test('From and To are days of the browser, and a bucket that is only partly in the range is marked', async () => {
  const { page, faults } = await openSignedIn('#/chart?startDate=2026-01-05&endDate=2026-01-05', {
    zone: 'Asia/Tokyo',
  });
  const day = 'startDate=2026-01-04T15:00:00Z&endDate=2026-01-05T14:59:59.999Z';
  const { body } = await pipeline.get<EventPage>(`/events?${day}`);
  await shown(page.getByText(`Total ${body.total}.`));
  await openMore(page);
  await page.getByText('All numbers', { exact: true }).click();
  const hours = page.getByRole('table', { name: /^Every hour/ }).locator('tbody tr');
  await eventually(() => hours.count()).toBe(24);
  expect(await hours.filter({ hasText: 'partial' }).count()).toBe(0);
  await page.goto(`${pipeline.services['query-api'].url}/console/#/events?startDate=2026-01-05&endDate=2026-01-05`);
  await shown(page.getByText(`${body.total} of ${body.total} events.`));
  const half = 'startDate=2026-01-05T03:00:00Z&endDate=2026-01-06&interval=day';
  await page.goto(`${pipeline.services['query-api'].url}/console/#/chart?${half}`);
  await openMore(page);
  await page.getByText('All numbers', { exact: true }).click();
  const days = page.getByRole('table', { name: /^Every day/ }).locator('tbody tr');
  await eventually(() => days.allInnerTexts()).toEqual([
    expect.stringContaining('partial'),
    expect.not.stringContaining('partial'),
  ]);
  expect(faults).toEqual([]);
});

test.each(['.', '..'])('the page of the user "%s" shows events, and why it shows nothing else', async (user) => {
  const submission = { foreignUserGroupId: 'acme', foreignUserId: user, events: [{ event: `of ${user}` }] };
  expect((await pipeline.submit(submission)).status).toBe(202);
  await pipeline.drained();
  const { page, faults } = await openSignedIn(`#/users/${user}`);
  await shown(page.getByText('A browser cannot ask for'));
  await shown(page.getByRole('link', { name: `of ${user}`, exact: true }));
  expect(faults).toEqual([]);
});

test('a page that fails says so, and the others work', async () => {
  const { page } = await openSignedIn('#/events');
  await page.route(/\/users\/jane%2Fdoe\?/, (route) => route.fulfill({ json: {} }));
  const { url } = pipeline.services['query-api'];
  await page.goto(`${url}/console/#/users/jane%2Fdoe`);
  await shown(page.getByRole('heading', { level: 1, name: 'This page failed' }));
  await page.goto(`${url}/console/#/organizations/acme`);
  await shown(page.getByRole('row', { name: /^tier "gold"/ }));
});

test('a browser without JSON.rawJSON shows events whose numbers no double holds', async () => {
  const number = '9007199254740993';
  const submitted = `{"foreignUserGroupId":"acme","events":[{"event":"long_number","properties":{"n":${number}}}]}`;
  expect((await pipeline.submit(submitted)).status).toBe(202);
  await pipeline.drained();
  for (const isOld of [false, true]) {
    const { page, context, faults } = await open('#/events?event=long_number');
    if (isOld) await context.addInitScript('delete JSON.rawJSON');
    await page.reload();
    await page.getByLabel('API key').fill(pipeline.key);
    await page.keyboard.press('Enter');
    await shown(page.getByRole('cell', { name: isOld ? '9007199254740992' : number }));
    expect(faults).toEqual([]);
  }
});
