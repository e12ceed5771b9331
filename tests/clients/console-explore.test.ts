import { readFile } from 'node:fs/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import {
  expectAccessible,
  type Look,
  looks,
  openMore,
  openSignedInConsole,
  tourOf,
} from '../kit/clients/console-page.ts';
import { cellsOf, countedClicks, MONTHS, submitFunnel, submitOwners } from '../kit/clients/explore.ts';
import { shown, tabTo, takePicture } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import type { EventPage } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;
/** A workspace whose users and organizations have properties. */
let owners: Tenant;
let browser: Browser;

const NAMES = ['🙂 smiled', 'שלום עולם', '<b>bold</b>, \\ and more'];

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consoleexplore'), sharedBrowser()]);
  owners = await takeTenant('consoleowners');
  await Promise.all([submitFunnel(pipeline), submitOwners(owners)]);
  const rest = [
    { event: 'deployed', timestamp: '2026-02-10T12:00:00Z' },
    ...NAMES.map((event) => ({ event, timestamp: '2026-02-12T12:00:00Z', properties: { 'größe, cm': 3 } })),
    { event: 'large', timestamp: '2025-06-01T00:00:00Z', properties: { text: 'x'.repeat(200_000) } },
  ];
  const submission = { foreignUserGroupId: 'acme', events: rest };
  expect((await pipeline.submit(submission)).status).toBe(202);
  for (const foreignUserId of [`long-${'x'.repeat(500)}`, 'שלום 🙂', '<b>bold</b>']) {
    const events = ['opened', 'closed'].map((event, day) => ({ event, timestamp: `2025-05-0${day + 1}T12:00:00Z` }));
    expect((await pipeline.submit({ foreignUserGroupId: 'acme', foreignUserId, events })).status).toBe(202);
  }
  await pipeline.drained();
});

const open = (hash: string, look?: Look) => openSignedInConsole({ pipeline, browser }, hash, look);

function parametersOf(page: Page): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.split('?')[1]));
}

/** Where the lines and bars of a chart are, once it is drawn. */
async function boxOfChart(page: Page) {
  // What is drawn anew has no place for a moment.
  return await until('the chart to be drawn', () => page.locator('.chart .u-over').boundingBox());
}

test('two months are compared: the numbers of both, and a legend that has the dashed line', async () => {
  const { page, faults } = await open(`#/explore?event=signed_up&${MONTHS}&timeZone=UTC`, { zone: 'UTC' });
  await shown(page.getByText('Total 24.'));
  await tabTo(page, page.getByLabel('Compare with'));
  await page.keyboard.type('the');
  await eventually(() => parametersOf(page)['compare']).toBe('previous');
  const { body } = await pipeline.get<{ total: number; previous: { total: number } }>(
    `/events/series?event=signed_up&${MONTHS}&interval=day&compare=previous`,
  );
  await eventually(() => cellsOf(page, /^Totals of Events/)).toEqual([
    ['Events', String(body.total), String(body.previous.total), '+140%'],
    ['Total', String(body.total), String(body.previous.total), '+140%'],
  ]);
  expect(await page.getByRole('columnheader', { name: 'Before' }).locator('.swatch').count()).toBe(1);
  await eventually(() => page.getByLabel('Range').inputValue()).toBe('custom');
  await eventually(() => page.getByLabel('From').inputValue()).toBe('2026-02-01');
  expect(faults).toEqual([]);
});

/** The ways of the requests for a chart since the last look, and those that were given up. */
function chartsOf(page: Page) {
  const [asked, aborted]: [string[], string[]] = [[], []];
  const measured = (url: string) => (url.includes('/events/series?') ? [new URL(url).searchParams.get('event')] : []);
  page.on('request', (request) => asked.push(...measured(request.url()).map(String)));
  page.on('requestfailed', (request) => aborted.push(...measured(request.url()).map(String)));
  return { asked, aborted };
}

test('a chart applies by itself: one entry for a word, no request for half a form, the last change counts', async () => {
  const { page, faults } = await open(`#/explore?${MONTHS}`, { zone: 'UTC' });
  await shown(page.getByRole('table', { name: /^Totals/ }));
  const { asked, aborted } = chartsOf(page);
  const event = page.getByLabel('Event', { exact: true });
  await event.click();
  // What is chosen from the menu is not there yet.
  await page.keyboard.type('sig', { delay: 20 });
  await shown(page.getByRole('option', { name: /^signed_up/ }));
  // Longer than the form waits.
  await page.waitForTimeout(400);
  await page.keyboard.type('ned_up', { delay: 20 });
  await shown(page.getByText('Total 24.'));
  expect(asked).toEqual(['signed_up']);
  // Half a form asks for nothing, and says what is missing.
  await page.getByLabel('Measure').selectOption('Sum of …');
  const form = page.getByRole('form', { name: 'Filters' });
  await shown(form.getByText('Choose a number property.'));
  await page.getByRole('button', { name: 'Add a filter' }).click();
  await page.getByLabel('Property or field', { exact: true }).fill('plan');
  await shown(form.getByText('Choose a number property. Choose a value of plan.'));
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Remove the filter' }).click();
  await page.getByLabel('Measure').selectOption('Distinct users');
  await shown(page.getByText('Total 20.'));
  expect(asked).toEqual(['signed_up', 'signed_up']);
  // A response that is overtaken is given up. Enter asks at once.
  const held = Promise.withResolvers<void>();
  await page.route('**/events/series?*event=paid*', async (route) => {
    await held.promise;
    await route.continue().catch(() => undefined);
  });
  await event.fill('paid');
  await page.keyboard.press('Enter');
  await eventually(() => asked.at(-1)).toBe('paid');
  await event.fill('signed_up');
  await page.keyboard.press('Enter');
  await eventually(() => aborted).toEqual(['paid']);
  held.resolve();
  await shown(page.getByText('Total 20.'));
  expect(parametersOf(page)).toMatchObject({ event: 'signed_up', measure: 'users' });
  // Back goes from one thing that was changed to the one before.
  await page.goBack();
  await eventually(() => event.inputValue()).toBe('paid');
  await page.goBack();
  await eventually(() => event.inputValue()).toBe('signed_up');
  await page.goBack();
  await eventually(() => parametersOf(page)['measure']).toBe(undefined);
  expect(await event.inputValue()).toBe('signed_up');
  await page.goBack();
  await eventually(() => event.inputValue()).toBe('');
  // What is typed with pauses, for which there is no menu, is one entry.
  await page.goto(`${pipeline.services['query-api'].url}/console/#/explore?report=values&property=event&${MONTHS}`);
  await shown(page.getByRole('table', { name: /^Values of Event/ }));
  await page.getByText('More', { exact: true }).click();
  for (const typed of ['p', 'pa']) {
    await page.getByLabel('Values begin with').fill(typed);
    await eventually(() => parametersOf(page)['prefix']).toBe(typed);
  }
  await page.goBack();
  await eventually(() => parametersOf(page)['prefix']).toBe(undefined);
  expect(faults).toEqual([]);
});

test('the range says Custom exactly while days count', async () => {
  const { page, faults } = await open('#/explore?range=7d');
  const range = page.getByLabel('Range');
  await eventually(() => range.inputValue()).toBe('7d');
  expect(await page.getByLabel('From').count()).toBe(0);
  await range.selectOption('Custom');
  await page.getByLabel('From').fill('2026-02-01');
  await page.getByLabel('To', { exact: true }).fill('2026-02-28');
  await page.keyboard.press('Enter');
  await eventually(() => parametersOf(page)).toEqual({ startDate: '2026-02-01', endDate: '2026-02-28' });
  await eventually(() => range.inputValue()).toBe('custom');
  // Back, before the page has heard of its own address, would be no change to it.
  await page.evaluate('new Promise((heard) => setTimeout(heard))');
  // What was changed in between may be entries, too. One step after the other: two would leave the first page.
  while (parametersOf(page)['range'] !== '7d') {
    const before = page.url();
    await page.goBack();
    await until('the entry before', async () => page.url() !== before);
  }
  await eventually(() => range.inputValue()).toBe('7d');
  await eventually(() => page.getByLabel('From').count()).toBe(0);
  expect(faults).toEqual([]);
});

test('a change that waits to be applied is not applied to an address that came meanwhile', async () => {
  const { page, faults } = await open('#/explore?range=7d');
  const range = page.getByLabel('Range');
  await eventually(() => range.inputValue()).toBe('7d');
  await page.clock.install();
  const rangeNow = () => page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('range')");
  /** Opens another range, if the address has this one. Returns whether it had. */
  const goFrom = (from: string, to: string) =>
    page.evaluate(`new Promise((resolve) => {
      if (!location.hash.endsWith('=${from}')) return resolve(false);
      addEventListener('hashchange', () => resolve(true), { once: true });
      location.hash = '#/explore?range=${to}';
    })`);
  // A page that nobody sees has no frames; its effects come with the next timer.
  await page.evaluate('requestAnimationFrame = () => 0');
  let left = 0;
  // A change waits for 300 ms, and for that.
  for (let waitedMs = 300; waitedMs <= 420; waitedMs += 10) {
    await page.clock.pauseAt(new Date(Date.now() + 3_600_000 + waitedMs * 10_000));
    await range.selectOption('30d');
    await page.clock.runFor(waitedMs);
    const hasLeft = await goFrom('7d', '24h');
    if (hasLeft) left += 1;
    await page.clock.runFor(1_000);
    const expected = hasLeft ? '24h' : '30d';
    expect([waitedMs, await rangeNow(), await range.inputValue()]).toEqual([waitedMs, expected, expected]);
    await goFrom(expected, '7d');
    await page.clock.runFor(1_000);
    expect([waitedMs, await rangeNow(), await range.inputValue()]).toEqual([waitedMs, '7d', '7d']);
  }
  expect(left).toBeGreaterThan(0);
  expect(faults).toEqual([]);
});

test('a funnel is built, reordered and broken down by keyboard alone; a step opens its events', async () => {
  const { page, faults } = await open(`#/explore?${MONTHS}`, { zone: 'UTC' });
  await tabTo(page, page.getByRole('link', { name: 'Funnel' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('Choose an event for step 1 and step 2.'));
  await tabTo(page, page.getByLabel('Step 1', { exact: true }));
  await page.keyboard.type('pai');
  await shown(page.getByRole('option', { name: /^paid/ }));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await eventually(() => page.getByLabel('Step 1', { exact: true }).inputValue()).toBe('paid');
  await tabTo(page, page.getByLabel('Step 2', { exact: true }));
  await page.keyboard.type('signed_up');
  await tabTo(page, page.getByRole('button', { name: 'Move step 2 up' }));
  await page.keyboard.press('Enter');
  await eventually(() => page.getByLabel('Step 1', { exact: true }).inputValue()).toBe('signed_up');
  await tabTo(page, page.getByLabel('Break down by', { exact: true }));
  await page.keyboard.type('plan');
  await page.keyboard.press('Enter');
  // The funnel before has the same sum.
  await eventually(() => parametersOf(page)).toMatchObject({
    ...{ report: 'funnel', steps: 'signed_up,paid', groupBy: 'properties.plan' },
    ...{ startDate: '2026-02-01', endDate: '2026-02-28' },
  });
  await shown(page.getByText('10 of 20 went all the way.'));
  await eventually(() => cellsOf(page, /^Users at each step$/)).toEqual([
    ['1. signed_up', '20', '100%', '', '', ''],
    ['2. paid', '10', '50%', '50%', '10', '60 minutes'],
  ]);
  const { body } = await pipeline.get<{ groups: { group: string[]; steps: { count: number }[] }[] }>(
    `/events/funnel?steps=signed_up,paid&${MONTHS}&groupBy=properties.plan`,
  );
  const groups = async () =>
    (await cellsOf(page, /, by plan/)).map(([group, first, second]) => [
      group,
      Number(first),
      Number.parseInt(second ?? '', 10),
    ]);
  await eventually(groups).toEqual(
    body.groups.map(({ group, steps }) => [group[0], ...steps.map(({ count }) => count)]),
  );
  await tabTo(page, page.getByRole('table', { name: /^Users at each step$/ }).getByRole('link', { name: 'paid' }));
  await page.keyboard.press('Enter');
  await shown(page.getByRole('heading', { level: 1, name: 'Events' }));
  await shown(page.getByText('10 of 10 events.'));
  expect(parametersOf(page)['event']).toBe('paid');
  expect(faults).toEqual([]);
});

/** The identifiers that a page lists. */
async function idsOf(page: Page): Promise<string[]> {
  return await page
    .getByRole('table', { name: /by identifier$/ })
    .getByRole('rowheader')
    .allTextContents();
}

test('a number of a funnel opens who is behind it, by keyboard: page by page, as CSV, and each with a page', async () => {
  const query = `report=funnel&steps=signed_up,paid&groupBy=properties.plan&${MONTHS}`;
  const { page, faults } = await open(`#/explore?${query}`, { zone: 'UTC' });
  const row = page.getByRole('table', { name: /^Users at each step$/ }).getByRole('row', { name: /paid/ });
  await shown(row);
  await tabTo(page, row.getByRole('link', { name: '10', exact: true }).last());
  await page.keyboard.press('Enter');
  await shown(page.getByRole('heading', { level: 1, name: 'Users who dropped out before step 2: paid' }));
  await shown(page.getByText('10 users.'));
  const dropped = Array.from({ length: 10 }, (_, index) => `user-${11 + 2 * index}`);
  await eventually(() => idsOf(page)).toEqual(dropped);
  expect(parametersOf(page)).toEqual({
    ...{ report: 'funnel', steps: 'signed_up,paid', step: '2', dropped: 'true' },
    ...{ startDate: '2026-02-01T00:00:00.000Z', endDate: '2026-02-28T23:59:59.999Z' },
  });
  const download = page.waitForEvent('download');
  await tabTo(page, page.getByRole('button', { name: 'These users as CSV' }));
  await page.keyboard.press('Enter');
  expect(await readFile(await (await download).path(), 'utf8')).toMatch(/^"id","startedAt","reachedAt"\n"user-11",/);

  await page.goto(`${page.url()}&limit=7`);
  await shown(page.getByText('7 users on this page.'));
  await tabTo(page, page.getByRole('link', { name: 'Next page' }));
  await page.keyboard.press('Enter');
  await eventually(() => idsOf(page)).toEqual(dropped.slice(7));
  await tabTo(page, page.getByRole('link', { name: 'user-25' }));
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await shown(page.getByRole('heading', { level: 1, name: 'user-29' }));
  await page.goBack();
  await tabTo(page, page.getByRole('link', { name: 'The report' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('10 of 20 went all the way.'));
  expect(faults).toEqual([]);
});

test('a number of a group opens as many as it counts', async () => {
  const query = `report=funnel&steps=signed_up,paid&groupBy=properties.plan&${MONTHS}`;
  const { page, faults } = await open(`#/explore?${query}`, { zone: 'UTC' });
  const row = page.getByRole('table', { name: /, by plan/ }).getByRole('row', { name: /^pro/ });
  await shown(row);
  const count = Number.parseInt((await row.getByRole('cell').last().textContent()) ?? '', 10);
  expect(count).toBeGreaterThan(0);
  await row.getByRole('cell').last().getByRole('link').click();
  await shown(page.getByText(`${count} users.`));
  await shown(page.getByText('Group: pro'));
  expect(faults).toEqual([]);
});

test('every fault of an address of people is said', async () => {
  const { page, faults } = await open('#/people?report=pie');
  await shown(page.getByText('report must be one of funnel, retention.'));
  await page.goto(`${pipeline.services['query-api'].url}/console/#/people?report=funnel&steps=a&step=9&x=%3Cb%3E`);
  await eventually(() => page.getByRole('alert').textContent()).toMatch(/steps must be.*x unknown.*startDate/s);
  expect(faults).toEqual([]);
});

test('a chart is broken down by a property through the menus; a number of a day opens exactly its events', async () => {
  const { page, faults } = await open(`#/explore?event=signed_up&${MONTHS}&interval=week`, { zone: 'UTC' });
  await page.getByLabel('Break down by', { exact: true }).fill('pl');
  await page.getByRole('option', { name: /^plan/ }).click();
  await eventually(() => parametersOf(page)['groupBy']).toBe('properties.plan');
  await shown(page.getByRole('table', { name: 'Totals of Events by plan' }).getByRole('link', { name: 'pro' }));
  await openMore(page);
  await page.getByText('All numbers', { exact: true }).click();
  const table = page.getByRole('table', { name: 'Every week of the chart' });
  const number = table.locator('tbody td a').first();
  const count = Number(await number.textContent());
  await number.click();
  await shown(page.getByText(`${count} of ${count} events.`));
  const { body } = await pipeline.get<EventPage>(
    `/events?${new URLSearchParams({ ...parametersOf(page), limit: '100' })}`,
  );
  expect(body.total).toBe(count);
  await page.goBack();
  await page.getByRole('table', { name: 'Totals of Events by plan' }).getByRole('link', { name: 'pro' }).click();
  await eventually(() => parametersOf(page)['properties.plan']).toBe('pro');
  expect(faults).toEqual([]);
});

test('features by plan, sign-ups by country and retention of organizations by plan are seen by few clicks alone', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline: owners, browser }, `#/explore?${MONTHS}`, {
    zone: 'UTC',
  });
  const { click, choose, take, filter, select, clicks } = countedClicks(page);
  await choose('Event', /^feature_used /);
  // What is shown before that is faint meanwhile.
  await shown(page.getByText('Total 4.'));
  await click(page.getByLabel('Break down by', { exact: true }));
  await shown(page.getByRole('group', { name: 'User properties' }).getByRole('option', { name: /^User: country / }));
  await expectAccessible(page, 'explore-owners-menu');
  await take(/^Organization: plan /);
  await eventually(() => cellsOf(page, 'Totals of Events by Organization: plan')).toEqual([
    ['pro', '3'],
    ['free', '1'],
    ['Total', '4'],
  ]);
  expect(clicks()).toBeLessThanOrEqual(5);
  await takePicture(page, 'explore-owners-chart');
  await filter(/^Organization: plan /, /^free /);
  await shown(page.getByText('Total 1.'));
  expect(clicks()).toBeLessThanOrEqual(3);
  expect(parametersOf(page)).toMatchObject({ event: 'feature_used', 'organization.properties.plan': 'free' });
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByLabel('Name of the view').fill('Features on free');
  await page.getByRole('button', { name: 'Save the view' }).click();
  await page.getByRole('status').getByRole('link', { name: 'Views' }).click();
  await page.getByRole('link', { name: 'Features on free', exact: true }).click();
  await shown(page.getByText('Total 1.'));
  await eventually(() => page.getByLabel('Property or field', { exact: true }).inputValue()).toBe('Organization: plan');
  await page.getByRole('link', { name: 'These events' }).click();
  await shown(page.getByText('1 of 1 event.'));

  await page.goto(`${owners.services['query-api'].url}/console/#/explore?${MONTHS}`);
  await eventually(() => page.getByLabel('Event', { exact: true }).inputValue()).toBe('');
  await choose('Event', /^signed_up /);
  await choose('Break down by', /^User: country /);
  await takePicture(page, 'explore-owners-form');
  await eventually(() => cellsOf(page, 'Totals of Events by User: country')).toEqual([
    ['CH', '4'],
    ['DE', '2'],
    ['Total', '6'],
  ]);
  expect(clicks()).toBeLessThanOrEqual(5);

  // Cohorts of so few days are of days.
  const days = 'startDate=2026-02-01&endDate=2026-02-10';
  await page.goto(`${owners.services['query-api'].url}/console/#/explore?${days}`);
  await click(page.getByRole('link', { name: 'Retention' }));
  await select(page.getByLabel('Who comes back'), 'Organizations');
  await choose('Break down by', /^Organization: plan /);
  const groups = async () =>
    (await cellsOf(page, /^Organizations by Organization: plan/)).map((row) => row.slice(0, 4));
  await eventually(groups).toEqual([
    ['free', '3', '100%', '0%'],
    ['pro', '3', '100%', '100%'],
    ['All', '6', '100%', '50%'],
  ]);
  expect(clicks()).toBeLessThanOrEqual(6);
  await takePicture(page, 'explore-owners-retention');
  await page.getByText('The cohorts of Organization: plan pro').click();
  await page
    .getByRole('table', { name: /^Organizations by the day/ })
    .last()
    .getByRole('row', { name: /^2 Feb 2026/ })
    .getByRole('link', { name: '100%' })
    .last()
    .click();
  await shown(
    page.getByRole('heading', { level: 1, name: /^Organizations of the cohort of .* who came back 1 day later$/ }),
  );
  await eventually(() => idsOf(page)).toEqual(['org-0', 'org-2', 'org-4']);
  expect(faults).toEqual([]);
});

test('a filter is completed from names and values; what is typed stays when there is none', async () => {
  const { page, faults } = await open('#/events');
  await page.getByRole('button', { name: 'Add a filter' }).click();
  await page.getByLabel('Property or field', { exact: true }).fill('größe');
  await page.getByRole('option', { name: /größe, cm/ }).click();
  await page.getByLabel('Value', { exact: true }).fill('3');
  await shown(page.getByRole('option', { name: /^3/ }));
  await takePicture(page, 'explore-suggestions');
  await page.keyboard.press('Escape');
  await eventually(() => page.getByRole('listbox').count()).toBe(0);
  await page.keyboard.press('Enter');
  await shown(page.getByText('3 of 3 events.'));
  expect(parametersOf(page)).toEqual({ 'properties.größe, cm': '3' });
  for (const name of NAMES) await shown(page.getByRole('rowheader', { name }));
  expect(faults).toEqual([]);
});

test('events with any name are steps of a funnel and groups of a chart', async () => {
  const { page, faults } = await open(`#/explore?${MONTHS}&groupBy=event,properties.gr%C3%B6%C3%9Fe%5C,%20cm`);
  const groups = async () => (await cellsOf(page, /^Totals/)).map(([group]) => group ?? '');
  await eventually(groups).toEqual(expect.arrayContaining(NAMES.map((name) => `${name} / 3`)));
  await page.getByRole('link', { name: /bold/ }).click();
  await shown(page.getByText('Total 1.'));
  await page.getByRole('link', { name: 'Funnel' }).click();
  await eventually(() => page.getByLabel('Step 1', { exact: true }).inputValue()).toBe(NAMES[2]);
  expect(faults).toEqual([]);
});

test('retention has a row for each cohort and a number for each interval that has been', async () => {
  const query = 'event=signed_up&startDate=2026-01-01&endDate=2026-02-28&interval=month';
  const { page, faults } = await open(`#/explore?report=retention&${query}`, { zone: 'UTC' });
  await eventually(() => cellsOf(page, /^Users by the month/)).toEqual([
    ['January 2026', '10', '100%', '0%'],
    ['February 2026', '20', '100%', ''],
  ]);
  await page.getByRole('table').getByRole('link', { name: 'February 2026' }).click();
  await shown(page.getByText('24 of 24 events.'));
  await page.goBack();
  await page
    .getByRole('row', { name: /^January/ })
    .getByRole('link', { name: '100%' })
    .click();
  await shown(page.getByRole('heading', { level: 1, name: 'Users of the cohort of January 2026' }));
  await eventually(() => idsOf(page)).toEqual(Array.from({ length: 10 }, (_, user) => `user-${user}`));
  expect(faults).toEqual([]);
});

test('the values of a property are counted; one filters, and the table is saved', async () => {
  const { page, faults } = await open(`#/explore?report=values&property=properties.plan&event=paid&${MONTHS}`);
  await eventually(() => cellsOf(page, /^Values of plan/)).toEqual([
    ['free', '7', '70%'],
    ['pro', '3', '30%'],
  ]);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Values as CSV' }).click();
  expect(await readFile(await (await download).path(), 'utf8')).toBe(
    '"plan","Events of the sample"\n"free",7\n"pro",3\n',
  );
  await page.getByRole('link', { name: 'pro' }).click();
  await eventually(() => cellsOf(page, /^Values of plan/)).toEqual([['pro', '3', '100%']]);
  expect(faults).toEqual([]);
});

test('a value of many characters is shown in part', async () => {
  const { page, faults } = await open(
    '#/explore?report=values&property=properties.text&startDate=2025-06-01&endDate=2025-06-01',
    { zone: 'UTC' },
  );
  const text = page.getByRole('rowheader', { name: /^xxx/ });
  await shown(text);
  expect((await text.textContent())?.length).toBeLessThan(2_000);
  expect(faults).toEqual([]);
});

test('a chart is read and zoomed by keyboard and by dragging, and saved as a picture', async () => {
  const { page, faults } = await open(`#/explore?event=signed_up&${MONTHS}&markers=deployed&timeZone=UTC`, {
    zone: 'UTC',
  });
  await shown(page.locator('.chart canvas'));
  await shown(page.getByText('Vertical lines: deployed (1)'));
  await tabTo(page, page.locator('summary', { hasText: 'More of the chart' }));
  await page.keyboard.press('Enter');
  await tabTo(page, page.getByLabel('Read a time'));
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await shown(page.getByText('2 Feb 2026: Events 2'));
  await tabTo(page, page.getByRole('button', { name: 'Zoom in on this day' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('Total 2.'));
  expect(parametersOf(page)).toMatchObject({
    ...{ startDate: '2026-02-02T00:00:00.000Z', endDate: '2026-02-02T23:59:59.999Z' },
  });
  await page.goBack();
  await shown(page.getByText('Total 24.'));
  // A chart that is drawn anew meanwhile, with its markers, lets go.
  await until('the chart to be zoomed', async () => {
    const box = await boxOfChart(page);
    await page.mouse.move(box.x + 10, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, box.y + 50, { steps: 5 });
    await page.mouse.up();
    return /startDate=2026-02-0[12]T/.test(decodeURIComponent(String(await page.evaluate('location.hash'))));
  });
  await shown(page.locator('.chart canvas'));
  const download = page.waitForEvent('download');
  await openMore(page);
  await page.getByRole('button', { name: 'Save as PNG' }).click();
  expect((await readFile(await (await download).path())).subarray(1, 4).toString()).toBe('PNG');
  expect(faults).toEqual([]);
});

test('a bar is read wherever the pointer is on it, and by the slider', async () => {
  const { page, faults } = await open(`#/explore?event=signed_up&${MONTHS}&form=bar&timeZone=UTC`, { zone: 'UTC' });
  await shown(page.locator('.chart canvas'));
  const box = await boxOfChart(page);
  for (const place of [1.2, 1.8]) {
    await page.mouse.move(box.x + (10.5 / 28) * box.width, box.y + 50);
    await eventually(() => page.locator('.tip').textContent()).toBe('11 Feb 2026Events2');
    await page.mouse.move(box.x + (place / 28) * box.width, box.y + 50);
    await eventually(() => page.locator('.tip').textContent()).toBe('2 Feb 2026Events2');
  }
  // A click stays, with what can be done.
  await page.mouse.click(box.x + (1.5 / 28) * box.width, box.y + 50);
  await shown(page.getByText('2 Feb 2026: Events 2'));
  await openMore(page);
  await page.getByLabel('Read a time').press('End');
  await shown(page.getByText('28 Feb 2026: Events 0'));
  expect(faults).toEqual([]);
});

test('a name of the legend hides its line by keyboard, and shows it again; the box has the largest first', async () => {
  const { page, faults } = await open(`#/explore?${MONTHS}&groupBy=event&interval=week&timeZone=UTC`, { zone: 'UTC' });
  await shown(page.locator('.chart canvas'));
  const box = await boxOfChart(page);
  const names = async () => {
    await page.mouse.move(box.x + 5, box.y + 50);
    await page.mouse.move(box.x + 10, box.y + 50);
    return await page.locator('.tip tr td:first-child').allInnerTexts();
  };
  const values = async () => (await page.locator('.tip td:nth-child(2)').allInnerTexts()).map(Number);
  await eventually(async () => (await names()).length).toBeGreaterThan(1);
  const [all, counts] = [await names(), await values()];
  expect(counts).toEqual(counts.toSorted((one, other) => other - one));
  const [first = ''] = all;
  const legend = page.getByRole('list', { name: 'Lines of the chart' });
  const name = legend.getByRole('button', { name: first, exact: true });
  await tabTo(page, name);
  await page.keyboard.press('Space');
  await eventually(names).toEqual(all.slice(1));
  expect([await name.getAttribute('aria-pressed'), await legend.getByRole('button').count()]).toEqual([
    'false',
    all.length,
  ]);
  await page.keyboard.press('Space');
  await eventually(names).toEqual(all);
  expect(faults).toEqual([]);
});

test('every fault of an address is said, and the page goes on', async () => {
  const hash =
    '#/explore?report=pie&form=%00&range=1y&startDate=never&measure=sum:&groupBy=properties.a,b&nonsense=%3Cscript%3E&event=a&event=b&properties.x%5Blike%5D=1';
  const { page, faults } = await open(hash);
  await eventually(() => page.getByRole('alert').textContent()).toMatch(
    /report must be.*form must be.*range must be.*startDate.*nonsense/s,
  );
  await shown(page.getByRole('list', { name: 'Also in the address' }).getByText('<script>'));
  await page.getByRole('button', { name: 'Remove nonsense' }).click();
  await page.getByRole('link', { name: 'Funnel' }).click();
  await eventually(() => page.getByRole('alert').textContent()).toMatch(/range must be.*startDate.*steps/s);
  expect(faults).toEqual([]);
});

test('a range without events says where there are some', async () => {
  const { page, faults } = await open('#/explore?event=large&range=24h', { zone: 'UTC' });
  await shown(page.getByText('The newest such event is of 1 June 2025'));
  await page.getByRole('link', { name: 'show that month' }).click();
  await shown(page.getByText('Total 1.'));
  await page.goto(`${pipeline.services['query-api'].url}/console/#/explore?event=nothing`);
  await shown(page.getByText('Nothing matches at any other time either.'));
  expect(faults).toEqual([]);
});

interface LookedAt {
  readonly hash: string;
  readonly shows: string | RegExp;
  /** Default: Explore. */
  readonly page?: string;
}

/** A page of each report, with what it shows. */
const PAGES: Readonly<Record<string, LookedAt>> = {
  lines: {
    hash: `event=signed_up&groupBy=properties.plan&compare=previous&markers=deployed&${MONTHS}`,
    shows: 'Total 24.',
  },
  funnel: {
    hash: `report=funnel&steps=signed_up,paid&step2.properties.amount%5Bgte%5D=0&groupBy=properties.plan&${MONTHS}`,
    shows: '10 of 20 went all the way.',
  },
  retention: {
    hash: 'report=retention&event=signed_up&interval=day&startDate=2026-01-30&endDate=2026-02-20',
    shows: /users in 22 cohorts/,
  },
  values: { hash: `report=values&property=event&${MONTHS}`, shows: /values\.$/ },
  faults: { hash: 'report=pie&nonsense=1&startDate=never', shows: /report must be/ },
  'odd-people': {
    page: 'people',
    hash: 'report=funnel&steps=opened,closed&step=2&groupBy=event&group=%22opened%22&startDate=2025-05-01&endDate=2025-05-31',
    shows: '3 users.',
  },
};

/** Other states of these pages. */
const OTHER_STATES: Readonly<Record<string, LookedAt>> = {
  stacked: { hash: `groupBy=properties.plan,event&form=stacked&interval=week&${MONTHS}`, shows: /^Total 3\d/ },
  bars: { hash: `measure=avg:properties.amount&groupBy=properties.plan&form=bar&${MONTHS}`, shows: /^Total \d/ },
  totals: { hash: `groupBy=event&interval=none&${MONTHS}`, shows: /^Total 3\d/ },
  number: { hash: `measure=users&form=number&compare=previous&${MONTHS}`, shows: 'Total 20.' },
  partial: { hash: 'startDate=2026-02-03T15:00:00Z&endDate=2026-02-11T15:00:00Z&interval=day', shows: /^Total \d/ },
  nothing: { hash: 'event=nothing', shows: 'Nothing matches at any other time either.' },
  people: {
    page: 'people',
    hash: `report=funnel&steps=signed_up,paid&step=1&limit=15&${MONTHS}`,
    shows: '15 users on this page.',
  },
  nobody: { page: 'people', hash: `report=retention&cohort=2026-02-01&period=5&${MONTHS}`, shows: 'Nobody.' },
  'people-faults': {
    page: 'people',
    hash: 'report=retention&cohort=never&startDate=2026-02-01',
    shows: /cohort must be/,
  },
};

const tour = tourOf(() => ({ pipeline, browser }), { zone: 'UTC' });

const lookedAt = looks(Object.entries(PAGES), Object.entries(OTHER_STATES));

test.each(lookedAt.map(([name, page]) => ({ name, ...page })))(
  'axe-core finds nothing in $name, which fits a phone',
  async ({ name, hash, shows, page: path = 'explore' }) => {
    const { page, faults } = await tour.show(`#/${path}?${hash}`);
    for (const [look, width] of looks<[string, number]>([['wide', 1280]], [['narrow', 390]])) {
      await page.setViewportSize({ width, height: 900 });
      await shown(page.getByText(shows).first());
      await expectAccessible(page, `explore-${name}`, `-${look}`);
    }
    await page.setViewportSize({ width: 360, height: 800 });
    await eventually(() => page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
    expect(faults).toEqual([]);
  },
);
