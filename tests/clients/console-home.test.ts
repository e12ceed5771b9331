import { eventually } from '@sluice/shared/testing/eventually';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible, openConsole, openSignedInConsole, takePictures } from '../kit/clients/console-page.ts';
import { shown, tabTo } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

const DAY_MS = 86_400_000;

let pipeline: Tenant;
let browser: Browser;

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consolehome'), sharedBrowser()]);
});

/** The figures of a page by their names. */
async function figuresOf(page: Page): Promise<Record<string, string>> {
  const terms = await page.locator('.figures dt').allTextContents();
  const values = await page.locator('.figures .figure').allTextContents();
  return Object.fromEntries(terms.map((term, index) => [term, values[index] ?? '']));
}

test('a first visitor is told how to send an event, without violations', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser });
  await shown(page.getByText('Waiting for the first event'));
  await shown(page.getByText(`Authorization: Bearer ${pipeline.key}`));
  await shown(page.getByText(`curl -X POST ${pipeline.services['ingest-api'].url}/v1/public/userGroups`));
  await expectAccessible(page, 'first-visit');
  expect(faults).toEqual([]);
});

test('the first event appears as it is stored, and then its numbers', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser });
  await shown(page.getByText('Waiting for the first event'));
  const now = Date.now();
  const events = [
    { event: 'signed_up', timestamp: new Date(now - 60_000).toISOString() },
    { event: 'paid', timestamp: new Date(now - 2 * DAY_MS).toISOString() },
    { event: 'paid', timestamp: new Date(now - 3 * DAY_MS).toISOString() },
    { event: 'paid', timestamp: new Date(now - 9 * DAY_MS).toISOString() },
    { event: 'paid', timestamp: new Date(now - 40 * DAY_MS).toISOString() },
  ];
  const submission = { foreignUserGroupId: 'acme', foreignUserId: 'jane', events };
  expect((await pipeline.submit(submission)).status).toBe(202);
  await shown(page.getByText('The first event has arrived.'));
  await shown(page.getByRole('rowheader', { name: 'signed_up' }));
  await pipeline.drained();
  await tabTo(page, page.getByRole('button', { name: 'Show the numbers' }));
  await page.keyboard.press('Enter');
  await eventually(() => figuresOf(page)).toEqual({
    ...{ 'Events, last 24 hours': '1', 'Events, last 7 days': '3', 'Events, last 30 days': '4' },
    ...{ 'Users, last 24 hours': '1', 'Users, last 7 days': '1', 'Users, last 30 days': '1' },
  });
  const top = page.getByRole('table', { name: 'In the last 7 days' }).locator('tbody tr');
  await eventually(() => top.allInnerTexts()).toEqual(['paid\t2\t1\t+100%', 'signed_up\t1\t0\tnew']);
  await shown(page.getByRole('region', { name: 'Newest users' }).getByRole('link', { name: 'jane' }));
  await shown(page.getByRole('region', { name: 'Newest organizations' }).getByRole('link', { name: 'acme' }));
  await shown(page.getByText('Everything that was accepted is stored.'));
  // A figure is that of the chart behind it: both count days of the time zone.
  await page.getByRole('link', { name: 'Chart' }).nth(1).click();
  await shown(page.getByText('Total 3.'));
  await eventually(() => page.getByLabel('Range').inputValue()).toBe('7d');
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

test('axe-core finds nothing on the home page, which fits a phone and waits while query-api is busy', async () => {
  const long = 'a_name_without_a_space_'.repeat(5);
  const submission = { foreignUserGroupId: long, foreignUserId: long, events: [{ event: long }] };
  expect((await pipeline.submit(submission)).status).toBe(202);
  await pipeline.drained();
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/settings');
  const { url } = pipeline.services['query-api'];
  let [asked, most] = [0, 0];
  const refused = new Set<string>();
  await page.route('**/events/series?*', async (route) => {
    asked += 1;
    most = Math.max(most, asked);
    const asks = new URL(route.request().url()).search;
    if (refused.has(asks) || refused.size >= 4) await route.continue();
    else {
      refused.add(asks);
      await route.fulfill({ status: 503, headers: { 'retry-after': '0' }, json: { message: 'The service is busy.' } });
    }
    asked -= 1;
  });
  await page.goto(`${url}/console/#/home`);
  await eventually(async () => Object.values(await figuresOf(page)).filter((value) => /\d/.test(value)).length).toBe(6);
  await page.unroute('**/events/series?*');
  expect(refused.size).toBe(4);
  expect(most).toBeLessThanOrEqual(3);
  await shown(page.getByRole('table', { name: 'In the last 7 days' }));
  await shown(page.locator('.chart canvas'));
  await expectAccessible(page, 'home');
  await page.setViewportSize({ width: 390, height: 844 });
  await takePictures(page, 'home', '-390');
  await eventually(() => page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  expect(faults).toEqual([]);
});
