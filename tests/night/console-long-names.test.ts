import { Receiver } from '@sluice/query-api/testing/webhooks';
import { eventually } from '@sluice/shared/testing/eventually';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openMore, tourOf } from '../kit/clients/console-page.ts';
import { overflowOf, shown, takePicture } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import type { EventPage } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

// Every page on phones, with names of two hundred characters without a space.

const PHONES = [390, 360];

const repeated = (text: string) => text.repeat(200).slice(0, 200);

/** From left to right, from right to left, and wide. */
const NAMES = [repeated('Unbreakable'), repeated('שלוםعليكم'), repeated('Ｗ漢﷽')];

/** The last one of the days of an overview. */
const YESTERDAY = 28;

const stack = new AsyncDisposableStack();
let pipeline: Tenant;
let browser: Browser;
/** What the pages of addresses are of: the place of a name, and what a test has made. */
const made: Record<string, string> = {};

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consolelongnames'), sharedBrowser()]);
  const receiver = stack.use(await Receiver.start());
  const { days } = (await pipeline.get('/overview?timeZone=Europe/Berlin')).body as object as { days: string[] };
  for (const [index, name] of NAMES.entries()) {
    // Names in addresses have at most 100 characters.
    const properties = { [name]: { [name]: [name, { [name]: name }] }, [short(name)]: name };
    const ids = { foreignUserGroupId: name, foreignUserId: name };
    for (const day of [8, 15, YESTERDAY]) {
      const timestamp = new Date(Date.parse(days[day] ?? '') + 12 * 3_600_000).toISOString();
      // Yesterday it was unusual.
      const events = Array.from({ length: day === YESTERDAY ? 30 : 1 }, () => ({ event: name, timestamp, properties }));
      expect((await pipeline.submit({ ...ids, events, properties: { ...properties, name } })).status).toBe(202);
    }
    const user = { foreignId: name, properties: { ...properties, name, email: `${name}@example.com` } };
    expect((await pipeline.submit(user, { path: '/v1/public/users' })).status).toBe(202);
    const call = { type: 'track', event: name, context: { library: { name, version: name } } };
    expect((await pipeline.submit({ batch: [call] }, { path: '/v1/batch' })).status).toBe(200);
    const segment = await send('PUT', `segments/${'Unbreakable'.repeat(5)}${index}`, {
      of: 'users',
      filters: { [`properties.${short(name)}`]: name },
      behaviour: [{ did: name, times: 1 }],
    });
    expect(segment).toMatchObject({ of: 'users' });
    await send('POST', 'keys', { name: name.slice(0, 100), scopes: ['ingest', 'query', 'admin'], rateLimit: 50 });
    const parameters = { range: '30d', event: name, groupBy: `event,properties.${short(name)}` };
    const reports = [
      ['series', parameters],
      ['series', { ...parameters, form: 'number' }],
      ['funnel', { range: '30d', steps: `${name},${name}`, groupBy: `properties.${short(name)}` }],
      ['retention', { range: '30d', event: name, groupBy: `properties.${short(name)}` }],
      ['values', { range: '30d', property: `properties.${short(name)}` }],
    ] as const;
    const views = [];
    for (const [report, given] of reports)
      views.push((await send('POST', 'views', { name, report, parameters: given })).id);
    const tiles = [...views.map((view) => ({ view, width: 1 })), { note: name, width: 1 }];
    const dashboard = await send('POST', 'dashboards', { name, tiles });
    const link = await send('POST', `dashboards/${dashboard.id}/links`, { name });
    const url = `${receiver.url}/${'unbreakable'.repeat(20)}`;
    const condition = { is: 'above', threshold: 1 };
    const alert = await send('POST', 'alerts', { name, view: views[0], condition, window: '1d', url });
    const digest = await send('POST', 'digests', { dashboard: dashboard.id, hour: 8, url });
    const webhook = await send('POST', 'webhooks', {
      url,
      filter: { event: name, [`properties.${short(name)}`]: name },
    });
    for (const [kind, { id }] of Object.entries({ dashboard, alert, digest, webhook })) made[`${kind}${index}`] = id;
    made[`link${index}`] = link.key;
  }
  await pipeline.drained();
  const { body } = await pipeline.get<EventPage>('/events?limit=200');
  for (const [index, name] of NAMES.entries()) {
    made[`event${index}`] = body.results.find(({ event }) => event === name)?.uuid ?? '';
    const path = '/dead-letters?limit=10';
    const { results } = (await pipeline.get<{ results: { id: string }[] }>(path)).body;
    made[`letter${index}`] = results[index]?.id ?? '';
  }
});
afterAll(() => stack.disposeAsync());

/** The beginning of a name that addresses can have. */
function short(name: string): string {
  return name.slice(0, 80);
}

/** Sends a request to query-api, and returns what it stores. */
async function send(
  method: string,
  path: string,
  body: object,
): Promise<{ readonly id: string; readonly key: string }> {
  const response = await fetch(`${pipeline.services['query-api'].url}/${path}`, {
    method,
    headers: { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect([path, response.status, response.ok ? '' : await response.clone().text()]).toEqual([
    ...[path, expect.any(Number), ''],
  ]);
  return (await response.json()) as { readonly id: string; readonly key: string };
}

const tour = tourOf(() => ({ pipeline, browser }));

interface LookedAt {
  readonly hash: (name: string, index: number) => string;
  /** What of it is there once all is loaded. */
  readonly parts: readonly string[];
  /** Opens what a page shows when it is asked to. Default: nothing. */
  readonly open?: (page: Page) => Promise<unknown>;
}

const reportOf = (params: (name: string) => Record<string, string>) => (name: string) =>
  `#/explore?${new URLSearchParams({ range: '30d', ...params(name) })}`;
const addressOf = (path: string) => (name: string) => `#/${path}/${encodeURIComponent(name)}`;
const idOf = (path: string, kind: string) => (_: string, index: number) => `#/${path}/${made[`${kind}${index}`]}`;
const groupBy = (name: string) => `properties.${short(name)}`;
const button = (name: string) => (page: Page) => page.getByRole('button', { name, exact: true }).first().click();
const summary = (text: string) => (page: Page) => page.locator('summary', { hasText: text }).first().click();

const OF_DASHBOARD = ['.tile canvas', '.tile .figure', '.tile .bars', '.tile .cohorts', '.tile .values'];
const OF_ENTITY = ['.properties td', '.members-page a', '.chart canvas', 'ol.timeline'];

const PAGES: Readonly<Record<string, LookedAt>> = {
  home: { hash: () => '#/home', parts: ['.changes li', '.members .verbatim'] },
  events: { hash: () => '#/events', parts: ['table.events td'] },
  'events-filtered': {
    hash: (name) =>
      `#/events?${new URLSearchParams({ event: name, [groupBy(name)]: name, [name.slice(0, 90)]: name })}`,
    parts: ['[role="alert"]'],
  },
  'events-filter-menu': {
    hash: () => '#/events',
    parts: ['.suggestions [role="option"]'],
    open: button('Add a filter'),
  },
  'events-columns': { hash: () => '#/events', parts: ['table.events td'], open: summary('Columns') },
  event: { hash: (_, index) => `#/events?show=${made[`event${index}`]}`, parts: ['.event-panel .tree'] },
  chart: {
    hash: reportOf((name) => ({ groupBy: `event,${groupBy(name)}` })),
    parts: ['.chart canvas'],
    open: openMore,
  },
  'chart-menu': {
    hash: reportOf(() => ({ groupBy: 'event' })),
    parts: ['.suggestions [role="option"]'],
    open: (page) => page.getByLabel('Break down by', { exact: true }).click(),
  },
  'chart-save': {
    hash: reportOf(() => ({ groupBy: 'event' })),
    parts: ['.save-view select'],
    open: async (page) => {
      await button('Save')(page);
      await eventually(() => page.locator('.save-view option').count()).toBe(NAMES.length + 2);
    },
  },
  'chart-small': {
    hash: reportOf((name) => ({ groupBy: `event,${groupBy(name)}`, form: 'bar', measure: 'users' })),
    parts: ['.chart canvas'],
  },
  funnel: {
    hash: reportOf((name) => ({ report: 'funnel', steps: `${name},${name}`, groupBy: groupBy(name) })),
    parts: ['.funnel-columns'],
  },
  retention: {
    hash: reportOf((name) => ({ report: 'retention', event: name, groupBy: groupBy(name) })),
    parts: ['.retention-curve'],
  },
  values: { hash: reportOf((name) => ({ report: 'values', property: groupBy(name) })), parts: ['table.values td'] },
  people: {
    hash: (name) =>
      `#/people?${new URLSearchParams({ report: 'funnel', steps: `${name},${name}`, step: '1', startDate: '2020-01-01' })}`,
    parts: ['table.events td'],
  },
  views: { hash: () => '#/views', parts: ['.documents td'] },
  dashboards: { hash: () => '#/dashboards', parts: ['.documents td'] },
  dashboard: { hash: idOf('dashboards', 'dashboard'), parts: OF_DASHBOARD },
  'dashboard-edit': { hash: idOf('dashboards', 'dashboard'), parts: ['.documents td'], open: button('Edit') },
  users: { hash: () => '#/users', parts: ['table.events td'] },
  organizations: { hash: () => '#/organizations', parts: ['table.events td'] },
  user: { hash: addressOf('users'), parts: OF_ENTITY },
  organization: { hash: addressOf('organizations'), parts: OF_ENTITY },
  'user-unknown': { hash: (name) => `#/users/${encodeURIComponent(`${name}${name}`)}`, parts: ['[role="alert"]'] },
  segments: { hash: () => '#/segments', parts: ['.documents td'] },
  segment: { hash: (_, index) => `#/segments/${'Unbreakable'.repeat(5)}${index}`, parts: ['.condition'] },
  webhooks: { hash: () => '#/webhooks', parts: ['.documents td'] },
  webhook: { hash: idOf('webhooks', 'webhook'), parts: ['.bar button'] },
  alerts: { hash: () => '#/alerts', parts: ['.documents td'] },
  alert: { hash: idOf('alerts', 'alert'), parts: ['form'], open: summary('Change it') },
  digest: { hash: idOf('digests', 'digest'), parts: ['form'], open: summary('Change it') },
  keys: { hash: () => '#/keys', parts: ['.documents td'] },
  'dead-letters': { hash: () => '#/dead-letters', parts: ['.documents td'] },
  'dead-letter': { hash: idOf('dead-letters', 'letter'), parts: ['dl.description'] },
  pipeline: { hash: () => '#/pipeline', parts: ['.figures', 'table th[scope="row"]'] },
  settings: { hash: () => '#/settings', parts: ['.settings input'] },
  search: {
    hash: () => '#/users',
    parts: ['dialog .suggestions [role="option"]'],
    open: async (page) => {
      await page.getByRole('button', { name: 'Search' }).click();
      const dialog = page.getByRole('dialog', { name: 'Search' });
      await shown(dialog);
      await page.keyboard.type('Un');
      await shown(dialog.getByRole('group', { name: 'Users' }));
    },
  },
};

test.each(Object.entries(PAGES))('%s is no wider than a phone', async (title, { hash, parts, open }) => {
  const hashes = new Set(NAMES.map(hash));
  for (const [index, address] of [...hashes].entries()) {
    const { page, faults } = await tour.show(address);
    if (open) await open(page);
    for (const part of parts) await shown(page.locator(part).first());
    for (const width of PHONES) {
      await page.setViewportSize({ width, height: 800 });
      // A chart takes the new width a moment later.
      await eventually(async () => [title, index, width, await overflowOf(page)]).toEqual([title, index, width, 0]);
    }
    await takePicture(page, `long-${title}-${index}`);
    await page.setViewportSize({ width: 1280, height: 800 });
    expect(faults).toEqual([]);
  }
});

test('a wall is no wider than a phone', async () => {
  for (const index of NAMES.keys()) {
    const context = await browser.newContext();
    const page = await context.newPage();
    const { url } = pipeline.services['query-api'];
    await page.goto(`${url}/console/#/dashboards/${made[`dashboard${index}`]}?key=${made[`link${index}`]}`);
    for (const part of OF_DASHBOARD) await shown(page.locator(part).first());
    for (const width of PHONES) {
      await page.setViewportSize({ width, height: 800 });
      await eventually(() => overflowOf(page)).toBe(0);
    }
    await takePicture(page, `long-wall-${index}`);
    await context.close();
  }
});
