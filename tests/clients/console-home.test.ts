import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import {
  expectAccessible,
  looks,
  type Opened,
  openConsole,
  openSignedInConsole,
  SCHEMES,
  takePictures,
} from '../kit/clients/console-page.ts';
import { shown, tabTo, takePicture } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import type { EventPage } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

const DAY_MS = 86_400_000;

/** The last one of the days of an overview. */
const YESTERDAY = 28;

/** What tests look at of `GET /overview`. */
interface Overview {
  readonly days: readonly string[];
  readonly figures: readonly { readonly value: number | null }[];
}

let pipeline: Tenant;
let browser: Browser;

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consolehome'), sharedBrowser()]);
});

test('a first visitor is told how to send an event, without violations', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser });
  await shown(page.getByText('Waiting for the first event'));
  await shown(page.getByText('Authorization: Bearer YOUR_KEY'));
  await shown(page.getByText(`curl -X POST ${pipeline.services['ingest-api'].url}/v1/public/userGroups`));
  // The key that is signed in may do more than a program should.
  expect(await page.getByRole('main').textContent()).not.toContain(pipeline.key);
  await tabTo(page, page.getByRole('button', { name: 'Make a key' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('may send events, and nothing else'));
  const key = /Bearer (sk_[\w-]{43})/.exec((await page.locator('.snippet').textContent()) ?? '')?.[1] ?? '';
  await expectAccessible(page, 'first-visit');
  await page.getByRole('navigation', { name: 'Ways to send' }).getByRole('link', { name: 'Python' }).click();
  await shown(page.getByText('python3 -m pip install segment-analytics-python'));
  await shown(page.getByText(`Client('${key}', host='${pipeline.services['ingest-api'].url}')`));
  await page.getByRole('link', { name: 'Browser' }).click();
  await expectAccessible(page, 'first-visit-browser');
  expect(faults).toEqual([]);
});

test('a reader cannot make a key, and is led to those who can', async () => {
  const reader = await pipeline.addKey('reading', ['query']);
  const { page } = await openConsole({ pipeline, browser });
  await page.getByLabel('API key').fill(reader);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Make a key' }).click();
  await shown(page.getByText('The API key lacks the scope "admin".'));
  await page.getByRole('button', { name: 'Load example data' }).click();
  await shown(page.getByText('The API key lacks the scope "ingest".'));
  await page.getByRole('main').getByRole('link', { name: 'Keys' }).click();
  await shown(page.getByRole('heading', { level: 1, name: 'Keys' }));
});

test('example data fill every report, once however often they are loaded, and are removed for good', async () => {
  const key = await pipeline.addKey('example');
  const { page, faults } = await openConsole({ pipeline, browser });
  await page.getByLabel('API key').fill(key);
  await page.keyboard.press('Enter');
  await tabTo(page, page.getByRole('button', { name: 'Load example data' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText(/events of 30 users are on their way/));
  await shown(page.getByText('The first event has arrived.'));
  const send = async (method: 'POST' | 'DELETE') => {
    const url = `${pipeline.services['query-api'].url}/example-data`;
    const response = await fetch(url, { method, headers: { authorization: `Bearer ${key}` } });
    return { status: response.status, body: (await response.json()) as { events?: number } };
  };
  const again = await send('POST');
  expect(again).toMatchObject({ status: 202, body: { users: 30 } });
  await pipeline.drained();
  const total = async () => (await pipeline.get<EventPage>('/events?limit=0&type=track', key)).body.total;
  expect(await total()).toBe(again.body.events);
  await page.getByRole('button', { name: 'Show the numbers' }).click();
  // Something was unusual yesterday.
  await shown(page.getByText(/error_shown/).first());
  expect(await page.getByText('Nothing was unusual').count()).toBe(0);
  await takePictures(page, 'home-example');
  await takeExample(page);
  // Somebody else's events are neither joined nor removed.
  await pipeline.submit({ foreignUserGroupId: 'acme', foreignUserId: 'jane', events: [{ event: 'own' }] }, { key });
  await pipeline.drained();
  expect(await send('POST')).toMatchObject({ status: 409, body: { code: 'workspace_not_empty' } });
  await page.goto(`${pipeline.services['query-api'].url}/console/#/settings`);
  await tabTo(page, page.getByRole('button', { name: 'Remove example data' }));
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  await shown(page.getByText('The example data are removed.'));
  await pipeline.drained();
  expect(await total()).toBe(1);
  const { results } = (await pipeline.get<{ results: object[] }>('/users', key)).body;
  expect(results).toMatchObject([{ foreignId: 'jane' }]);
  expect(faults).toEqual([]);
});

/** Keeps the pictures of README: the example in Explore, with the numbers of a day beside the pointer. */
async function takeExample(page: Page): Promise<void> {
  const query = 'event=feature_used&groupBy=user.properties.plan&range=30d&form=stacked';
  for (const colorScheme of looks<(typeof SCHEMES)[number]>([], SCHEMES)) {
    await page.emulateMedia({ colorScheme });
    await page.goto(`${pipeline.services['query-api'].url}/console/#/explore?${query}`);
    await shown(page.locator('.chart canvas'));
    // Not where the pointer was before.
    await page.mouse.move(0, 0);
    await page.locator('.chart .u-over').hover();
    await shown(page.locator('.tip'));
    await takePicture(page, `explore-example-${colorScheme}`);
  }
}

test('the first event appears as it is stored, and then its numbers', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/settings');
  await page.clock.install();
  await page.goto(`${pipeline.services['query-api'].url}/console/#/home`);
  await shown(page.getByText('Waiting for the first event'));
  const submission = { foreignUserGroupId: 'acme', foreignUserId: 'jane', events: [{ event: 'signed_up' }] };
  expect((await pipeline.submit(submission)).status).toBe(202);
  await shown(page.getByText('The first event has arrived.'));
  await shown(page.getByRole('rowheader', { name: 'signed_up' }));
  await pipeline.drained();
  await tabTo(page, page.getByRole('button', { name: 'Show the numbers' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('today so far: 1').first());
  await until('all to be stored', async () => {
    // The page reads the state of the pipeline again this often.
    await page.clock.fastForward(10_000);
    return await page.getByText('Everything that was accepted is stored.').isVisible();
  });
  await shown(page.getByText(/This compares a day with the same weekday .* so it begins on/));
  await shown(page.getByText('Nothing happened yesterday.'));
  await takePictures(page, 'home-new');
  expect(faults).toEqual([]);
});

test('the first event appears also when it was stored before the page listened', async () => {
  const key = await pipeline.addKey('early', ['ingest', 'query']);
  const { page, faults } = await openConsole({ pipeline, browser });
  const stored = Promise.withResolvers<void>();
  await page.route('**/events/stream*', async (route) => {
    await stored.promise;
    await route.continue();
  });
  await page.getByLabel('API key').fill(key);
  await page.keyboard.press('Enter');
  await shown(page.getByText('Waiting for the first event'));
  await pipeline.submit({ foreignUserGroupId: 'acme', events: [{ event: 'early' }] }, { key });
  await pipeline.drained();
  stored.resolve();
  await shown(page.getByText('The first event has arrived.'));
  await shown(page.getByRole('rowheader', { name: 'early' }));
  expect(faults).toEqual([]);
});

test('where nothing has happened lately, the home page says when something did', async () => {
  const key = await pipeline.addKey('quiet', ['ingest', 'query']);
  const events = [{ event: 'paid', timestamp: '2026-01-02T12:00:00Z' }];
  await pipeline.submit({ foreignUserGroupId: 'acme', events }, { key });
  await pipeline.drained();
  const { page, faults } = await openConsole({ pipeline, browser });
  await page.getByLabel('API key').fill(key);
  await page.keyboard.press('Enter');
  await shown(page.getByText('The newest event is of 2 Jan 2026, 13:00:00'));
  await page.getByRole('link', { name: 'show it' }).click();
  await shown(page.getByText('1 of 1 event.'));
  expect(faults).toEqual([]);
});

/** A name that no line has room for. */
const LONG = 'a_name_without_a_space_'.repeat(8);

/** Fills a workspace with four weeks, of which yesterday was unusual. */
async function fillWeeks(key: string): Promise<Overview> {
  const before = await overviewOf(key);
  const send = async (day: number, user: string, events: readonly object[]) => {
    const timestamp = new Date(Date.parse(before.days[day] ?? '') + DAY_MS / 2).toISOString();
    const submission = { foreignUserGroupId: user === 'jane' ? 'acme' : LONG, foreignUserId: user, events };
    const timed = { ...submission, events: events.map((event) => ({ ...event, timestamp })) };
    expect((await pipeline.submit(timed, { key })).status).toBe(202);
  };
  const some = (count: number, event: object) => Array.from({ length: count }, () => event);
  for (let day = 0; day < YESTERDAY; day += 1) {
    await send(day, 'jane', some(30, { event: 'signed_up' }));
    await send(day, 'joe', some(20, { event: 'opened', properties: { plan: 'pro' } }));
    await send(day, `user-${day % 4}`, some(20, { event: 'opened', properties: { plan: 'free' } }));
  }
  await send(YESTERDAY, 'jane', some(5, { event: 'signed_up' }));
  await send(YESTERDAY, 'joe', some(2, { event: 'opened', properties: { plan: 'pro' } }));
  await send(YESTERDAY, 'jim', some(38, { event: 'opened', properties: { plan: 'free' } }));
  await send(YESTERDAY, 'jim', some(25, { event: LONG, properties: { [LONG.slice(0, 90)]: LONG.slice(0, 90) } }));
  await pipeline.drained();
  return await overviewOf(key);
}

async function overviewOf(key: string): Promise<Overview> {
  const { status, body } = await pipeline.get('/overview?timeZone=Europe/Berlin', key);
  expect(status).toBe(200);
  return body as object as Overview;
}

let weeks: { readonly key: string; readonly overview: Overview };

beforeAll(async () => {
  const key = await pipeline.addKey('weeks', ['ingest', 'query', 'admin']);
  weeks = { key, overview: await fillWeeks(key) };
});

/** Opens Home of the workspace with four weeks. */
async function openMorning(): Promise<Opened> {
  const opened = await openConsole({ pipeline, browser });
  await opened.page.getByLabel('API key').fill(weeks.key);
  await opened.page.keyboard.press('Enter');
  return opened;
}

test('the morning shows what was unusual, says what was expected, and leads to the chart of it', async () => {
  const { page, faults } = await openMorning();
  const changes = page.getByRole('region', { name: 'What changed' }).getByRole('listitem');
  await shown(changes.filter({ hasText: 'signed_up' }));
  await eventually(() => changes.allInnerTexts()).toEqual([
    expect.stringMatching(/^▲ new\s+a_name_.*\s+expected 0 to 4, was 25$/),
    expect.stringMatching(/^▼ −83%\s+signed_up\s+expected 16 to 48, was 5$/),
    expect.stringMatching(/^▼ −90%\s+opened with plan = pro\s+expected in 22.5% to 87.5%, was in 5% of 40 events$/),
    expect.stringMatching(/^▲ \+90%\s+opened with plan = free\s+expected in 22.5% to 87.5%, was in 95% of 40 events$/),
  ]);
  await changes.getByRole('link', { name: 'signed_up' }).click();
  await shown(page.getByText(`Total ${30 * YESTERDAY + 5}.`));
  await page.goBack();
  const pro = page.getByRole('link', { name: 'opened with plan = pro' });
  await shown(pro);
  await tabTo(page, pro);
  await page.keyboard.press('Enter');
  await shown(page.getByText(`Total ${20 * YESTERDAY + 2}.`));
  expect(faults).toEqual([]);
});

test('each figure is that of the chart behind it', async () => {
  const { page, faults } = await openMorning();
  const figures = page.locator('.morning > div');
  await eventually(() => figures.count()).toBe(4);
  const values = await figures.locator('.figure').allInnerTexts();
  expect(values).toEqual(weeks.overview.figures.map(({ value }) => String(value)));
  expect(values).toEqual(['70', '3', '2', '7']);
  for (const index of looks([0], [1, 2, 3])) {
    await figures.nth(index).locator('.figure a').click();
    await shown(page.getByText(new RegExp(`^Total ${values[index]}\\.`)));
    await page.goBack();
    await eventually(() => figures.count()).toBe(4);
  }
  await page.getByRole('link', { name: '28 days of Events' }).click();
  await shown(page.getByText('Total 2,030.'));
  await page.goBack();
  const top = page.getByRole('table', { name: 'Yesterday, beside a week before' }).locator('tbody tr');
  await eventually(() => top.allInnerTexts()).toEqual([
    expect.stringMatching(/^opened\t40\t40\tsame/),
    expect.stringMatching(/^a_name_.*\t25\t0\t▲ new/),
    expect.stringMatching(/^signed_up\t5\t30\t▼ −83%/),
  ]);
  await top.getByRole('link', { name: 'signed_up' }).click();
  await shown(page.getByText('Total 5.'));
  expect(faults).toEqual([]);
});

test('a dashboard that was pinned is on the home page of its workspace, in this browser, until it is deleted', async () => {
  const query = pipeline.services['query-api'].url;
  const send = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${weeks.key}`, ...(body && { 'content-type': 'application/json' }) };
    const response = await fetch(`${query}/${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    expect(response.ok).toBe(true);
    return response.status === 204 ? '' : ((await response.json()) as { id: string }).id;
  };
  const view = await send('POST', 'views', { name: 'Sign-ups', report: 'series', parameters: { event: 'signed_up' } });
  const id = await send('POST', 'dashboards', { name: 'Mornings', tiles: [{ view, width: 1 }] });
  const { page, faults } = await openMorning();
  await shown(page.getByRole('region', { name: 'What changed' }));
  await page.goto(`${query}/console/#/dashboards/${id}`);
  const pin = page.getByRole('button', { name: 'Pin to Home' });
  await shown(pin);
  await tabTo(page, pin);
  await page.keyboard.press('Enter');
  await eventually(() => pin.getAttribute('aria-pressed')).toBe('true');
  await page.goto(`${query}/console/#/home`);
  const pinned = page.getByRole('region', { name: 'Mornings' });
  await shown(pinned.getByRole('heading', { name: 'Sign-ups' }));
  await shown(pinned.locator('canvas'));
  await expectAccessible(page, 'home-pinned');
  await page.reload();
  await shown(pinned.getByRole('heading', { name: 'Sign-ups' }));
  await send('DELETE', `dashboards/${id}`);
  await page.reload();
  await shown(page.getByRole('region', { name: 'What changed' }));
  await eventually(() => pinned.count()).toBe(0);
  expect(await page.getByRole('alert').count()).toBe(0);
  expect(faults).toEqual([]);
});

test('while query-api is busy the home page says so and tries again; then it says that it could not', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/settings');
  const { url } = pipeline.services['query-api'];
  const busy = { status: 503, headers: { 'retry-after': '0' }, json: { message: 'The service is busy.' } };
  const seen = Promise.withResolvers<void>();
  let asked = 0;
  await page.route('**/overview?*', async (route) => {
    asked += 1;
    if (asked === 2) await seen.promise;
    await route.fulfill(busy);
  });
  await page.goto(`${url}/console/#/home`);
  await shown(page.getByText('query-api is busy. Trying again …'));
  await takePictures(page, 'home-busy');
  seen.resolve();
  await shown(page.getByRole('alert').getByText('The service is busy.'));
  expect(asked).toBe(5);
  expect(await page.locator('main').textContent()).not.toContain('…');
  await takePictures(page, 'home-failed');
  await page.unroute('**/overview?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await shown(page.getByRole('region', { name: 'What changed' }));
  expect(faults).toEqual([]);
});

test('axe-core finds nothing on the home page, which asks once for all its numbers and fits a phone', async () => {
  const { page, faults } = await openMorning();
  await shown(page.getByRole('region', { name: 'What changed' }).getByText(/^a_name_/));
  const lastOfSettings = ['**/names/properties', '**/properties/fast/proposed', '**/identities/settings'];
  const askedBySettings = Promise.all(lastOfSettings.map((path) => page.waitForRequest(path)));
  await page.goto(`${pipeline.services['query-api'].url}/console/#/settings`);
  // Otherwise the page may only ever see the address of Home again.
  await shown(page.getByRole('heading', { name: 'Settings', level: 1 }));
  await askedBySettings;
  const asked: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (!pathname.startsWith('/console')) asked.push(pathname);
  });
  await page.goto(`${pipeline.services['query-api'].url}/console/#/home`);
  await shown(page.getByText('Everything that was accepted is stored.'));
  await shown(page.getByRole('region', { name: 'What changed' }).getByText(/^a_name_/));
  expect(asked.filter((path) => path !== '/pipeline')).toEqual(['/overview']);
  await expectAccessible(page, 'home');
  for (const width of [390, 360]) {
    await page.setViewportSize({ width, height: 844 });
    await takePictures(page, 'home', `-${width}`);
    await eventually(() => page.evaluate('document.documentElement.scrollWidth')).toBe(width);
  }
  expect(faults).toEqual([]);
});
