import { eventually } from '@sluice/shared/testing/eventually';
import type { Browser } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { tourOf } from '../kit/clients/console-page.ts';
import { cellsOf, countedClicks } from '../kit/clients/explore.ts';
import { shown } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

// What people come for, by clicks alone, from Home. docs/design/decisions/0104 has how many clicks each takes, and why.

/** The clicks that it may take to look at something that is there, and to build a report or a key. */
const [LOOKING, BUILDING] = [3, 8];

const HOUR_MS = 3_600_000;

/** The last one of the days of an overview. */
const YESTERDAY = 28;

let pipeline: Tenant;
let browser: Browser;

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consolejourneys'), sharedBrowser()]);
  const { body } = await pipeline.get('/overview?timeZone=Europe/Berlin');
  const { days } = body as object as { readonly days: readonly string[] };
  // Each day somebody signs up. Business accounts use a feature at once, of the others every second one does; yesterday few opened it.
  for (const [index, day] of days.entries()) {
    const plan = index % 2 === 0 ? 'business' : 'free';
    const feature = { 0: 'export', 2: 'comments', 3: 'search' }[index % 4];
    const at = (hour: number) => new Date(Date.parse(day) + hour * HOUR_MS).toISOString();
    const events = [
      { event: 'signed_up', timestamp: at(12) },
      ...Array.from({ length: index === YESTERDAY ? 5 : 30 }, () => ({ event: 'opened', timestamp: at(13) })),
      ...(feature ? [{ event: 'feature_used', timestamp: at(14), properties: { feature } }] : []),
    ];
    const ids = { foreignUserGroupId: `org-${index % 4}`, foreignUserId: `user-${index}` };
    expect((await pipeline.submit({ ...ids, events, properties: { plan } })).status).toBe(202);
  }
  const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
  const events = [
    { event: 'export_started', timestamp: ago(12) },
    { event: 'export_failed', timestamp: ago(11), properties: { reason: 'The disk is full.' } },
    { event: 'order_placed', timestamp: ago(0) },
  ];
  const submission = { foreignUserGroupId: 'org-0', foreignUserId: 'ann', events };
  expect((await pipeline.submit(submission)).status).toBe(202);
  const ann = { foreignId: 'ann', properties: { name: 'Ann Lee', email: 'ann@example.com' } };
  expect((await pipeline.submit(ann, { path: '/v1/public/users' })).status).toBe(202);
  const call = { type: 'track', event: 'order_refunded', context: { library: { name: 'analytics-kotlin' } } };
  expect((await pipeline.submit({ batch: [call] }, { path: '/v1/batch' })).status).toBe(200);
  await pipeline.drained();
});

const tour = tourOf(() => ({ pipeline, browser }));

/** Opens Home, where each journey begins. */
async function begin() {
  const { page, faults } = await tour.show('#/home');
  await shown(page.getByRole('heading', { level: 1, name: 'Home' }));
  const pages = page.getByRole('navigation', { name: 'Pages', exact: true });
  const leadTo = (name: string) => pages.getByRole('link', { name, exact: true });
  return { page, faults, leadTo, ...countedClicks(page) };
}

test('what changed since yesterday', async () => {
  const { page, faults, click, clicks } = await begin();
  const change = page.getByRole('region', { name: 'What changed' }).getByRole('listitem').filter({ hasText: 'opened' });
  await eventually(() => change.textContent()).toMatch(/▼ −83%.*expected 16 to 48, was 5$/);
  await click(change.getByRole('link', { name: 'opened' }));
  await shown(page.getByText(`Total ${30 * YESTERDAY + 5}.`));
  expect(clicks()).toBeLessThanOrEqual(LOOKING);
  expect(faults).toEqual([]);
});

test('activation by plan of the organization', async () => {
  const { page, faults, leadTo, click, choose, clicks } = await begin();
  await click(leadTo('Explore'));
  await click(page.getByRole('link', { name: 'Funnel' }));
  await choose('Step 1', /^signed_up \d/);
  await choose('Step 2', /^feature_used \d/);
  await choose('Break down by', /^Organization: plan /);
  const plans = page.getByRole('table', { name: /, by Organization: plan/ });
  await shown(plans.getByRole('row', { name: /^business .*100%/ }));
  await shown(plans.getByRole('row', { name: /^free .*[45]\d(?:\.\d)?%/ }));
  expect(clicks()).toBeLessThanOrEqual(BUILDING);
  expect(faults).toEqual([]);
});

test('features that business accounts use', async () => {
  const { page, faults, leadTo, click, choose, filter, clicks } = await begin();
  await click(leadTo('Explore'));
  await choose('Event', /^feature_used \d/);
  await choose('Break down by', /^feature string/);
  await filter(/^Organization: plan /, /^business /);
  const features = async () => (await cellsOf(page, 'Totals of Events by feature')).map(([feature]) => feature);
  await eventually(features).toEqual(['export', 'comments', 'Total']);
  expect(clicks()).toBeLessThanOrEqual(BUILDING);
  expect(faults).toEqual([]);
});

test('last week against the week before', async () => {
  const { page, faults, leadTo, click, select, clicks } = await begin();
  await click(leadTo('Explore'));
  await select(page.getByLabel('Range'), 'Last 7 days');
  await select(page.getByLabel('Compare with'), 'the 7 days before');
  const total = async () => (await cellsOf(page, 'Totals of Events')).at(-1);
  await eventually(total).toEqual([
    'Total',
    expect.stringMatching(/^\d+$/),
    expect.stringMatching(/^\d+$/),
    expect.stringMatching(/^−\d.*%$/),
  ]);
  expect(clicks()).toBeLessThanOrEqual(BUILDING);
  expect(faults).toEqual([]);
});

test('a customer by e-mail, and what came before the error', async () => {
  const { page, faults, click, type, take, clicks, typed } = await begin();
  await click(page.getByRole('button', { name: 'Search' }));
  await shown(page.getByRole('dialog', { name: 'Search' }));
  await type('ann@example.com');
  await take(/^Ann Lee /);
  await shown(page.getByRole('heading', { level: 1, name: 'user Ann Lee ann' }));
  const timeline = page.getByRole('region', { name: 'Events', exact: true });
  await eventually(() => timeline.locator('[data-event]').allInnerTexts()).toEqual([
    ...['order_placed', 'export_failed', 'export_started'],
  ]);
  await click(timeline.getByRole('link', { name: 'export_failed' }));
  await shown(page.getByRole('region', { name: 'Event', exact: true }).getByText('"The disk is full."'));
  expect([clicks(), typed()]).toEqual([LOOKING, 1]);
  expect(faults).toEqual([]);
});

test('whether an event has arrived, and why another one was refused', async () => {
  const { page, faults, leadTo, click, clicks } = await begin();
  const rejected = page.getByRole('region', { name: 'Newest rejected calls' }).getByRole('listitem');
  await shown(rejected.getByText(/analytics-kotlin One of userId, anonymousId/));
  await click(rejected.getByRole('link'));
  await eventually(() => page.getByLabel('The call').inputValue()).toContain('order_refunded');
  await click(leadTo('Events'));
  await shown(page.getByRole('row', { name: /^(?:now|\d+ \w+ ago) order_placed / }));
  expect(clicks()).toBeLessThanOrEqual(LOOKING);
  expect(faults).toEqual([]);
});

test('a key', async () => {
  const { page, faults, leadTo, click, clicks } = await begin();
  await click(page.locator('summary', { hasText: 'Operate' }));
  await click(leadTo('Keys'));
  await click(page.getByRole('checkbox', { name: /^ingest/ }));
  await click(page.getByRole('button', { name: 'Create a key' }));
  await shown(page.getByText('It is shown only now'));
  expect(clicks()).toBeLessThanOrEqual(BUILDING);
  expect(faults).toEqual([]);
});

test('whether it keeps up', async () => {
  const { page, faults, click, clicks } = await begin();
  await shown(page.getByText('Everything that was accepted is stored.'));
  await click(page.getByRole('main').getByRole('link', { name: 'Pipeline' }));
  await shown(page.locator('.figures > div', { hasText: /^Lag0/ }));
  expect(clicks()).toBeLessThanOrEqual(LOOKING);
  expect(faults).toEqual([]);
});
