import { eventually } from '@sluice/shared/testing/eventually';
import type { Browser } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible, openMore, openSignedInConsole, takePictures } from '../kit/clients/console-page.ts';
import { cellsOf, countedClicks, MONTHS, submitFunnel, submitOwners } from '../kit/clients/explore.ts';
import { shown, tabTo } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

// More reports and charts than tests/clients/console-explore.test.ts has.

/** A workspace whose events have properties. */
let funnel: Tenant;
/** A workspace whose users and organizations have properties. */
let owners: Tenant;
let browser: Browser;

beforeAll(async () => {
  [owners, browser] = await Promise.all([takeTenant('consolereports'), sharedBrowser()]);
  funnel = await takeTenant('consolefunnel');
  await Promise.all([submitFunnel(funnel), submitOwners(owners)]);
  // A fifth group of events by name and plan.
  const deployed = [{ event: 'deployed', timestamp: '2026-02-10T12:00:00Z' }];
  expect((await funnel.submit({ foreignUserGroupId: 'acme', events: deployed })).status).toBe(202);
  await owners.drained();
});

test('a funnel by plan is built by eight clicks', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline: owners, browser }, `#/explore?${MONTHS}`, {
    zone: 'UTC',
  });
  const { click, choose, clicks } = countedClicks(page);
  await click(page.getByRole('link', { name: 'Funnel' }));
  await choose('Step 1', /^signed_up \d/);
  await choose('Step 2', /^feature_used \d/);
  await choose('Break down by', /^Organization: plan .*%$/);
  await shown(page.getByRole('table', { name: /, by Organization: plan/ }).getByRole('rowheader', { name: 'pro' }));
  expect(clicks()).toBeLessThanOrEqual(8);
  // A field with a value is changed and emptied by the pointer alone.
  await choose('Break down by', /^User: country /);
  await shown(page.getByRole('table', { name: /, by User: country/ }).getByRole('rowheader', { name: 'CH' }));
  await choose('Break down by', /nothing/);
  await eventually(() => page.getByRole('table', { name: /, by / }).count()).toBe(0);
  await takePictures(page, 'explore-funnel');
  await page.setViewportSize({ width: 390, height: 844 });
  await takePictures(page, 'explore-funnel', '-390');
  expect(faults).toEqual([]);
});

test('the funnel of one segment against the rest, and who did not do something, are seen by few clicks', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline: owners, browser }, '#/segments', { zone: 'UTC' });
  const { click, choose, take, filter, select, clicks } = countedClicks(page);
  const form = page.getByRole('form', { name: 'New segment' });
  await form.getByLabel('Name').fill('on-pro');
  await select(form.getByLabel('Of'), 'Organizations');
  await filter(/^Organization: plan /, /^pro /);
  await click(form.getByRole('button', { name: 'Save the segment' }));
  await shown(page.getByText('Organization: plan is pro: 3 organizations'));
  expect(clicks()).toBeLessThanOrEqual(6);

  await click(page.getByRole('link', { name: 'Explore them' }));
  await click(page.getByRole('link', { name: 'Funnel' }));
  await choose('Step 1', /^signed_up /);
  await choose('Step 2', /^feature_used /);
  await select(page.getByLabel('Range'), 'Custom');
  await page.getByLabel('From').fill('2026-02-01');
  await page.getByLabel('To', { exact: true }).fill('2026-02-28');
  const people = async () => (await cellsOf(page, /^Users at each step$/)).map(([step, count]) => [step, count]);
  await eventually(people).toEqual([
    ['1. signed_up', '3'],
    ['2. feature_used', '3'],
  ]);
  await select(page.getByLabel('Operator'), 'is not');
  await eventually(people).toEqual([
    ['1. signed_up', '3'],
    ['2. feature_used', '1'],
  ]);
  expect(clicks()).toBeLessThanOrEqual(12);

  await page.goto(`${owners.services['query-api'].url}/console/#/segments`);
  await form.getByLabel('Name').fill('idle');
  await select(form.getByLabel('Of'), 'Organizations');
  await click(form.getByRole('button', { name: 'Add what they did' }));
  await take(/^feature_used /);
  await select(form.getByLabel('Whether they did it'), 'Did not do');
  await click(form.getByRole('button', { name: 'Save the segment' }));
  await shown(page.getByText('did not do “feature_used” within 30 days: 6 organizations'));
  await page.getByRole('form', { name: 'What idle is' }).getByLabel('days').fill('');
  await click(page.getByRole('button', { name: 'Save the segment' }));
  await click(page.getByRole('link', { name: '2 organizations' }));
  await shown(page.getByRole('heading', { level: 1, name: 'Organizations' }));
  await eventually(() => page.locator('tbody tr').count()).toBe(2);
  expect(clicks()).toBeLessThanOrEqual(9);
  expect(faults).toEqual([]);
});

test('the numbers of a long chart are in the page once they are asked for, a part at a time', async () => {
  const { page, faults } = await openSignedInConsole(
    { pipeline: owners, browser },
    '#/chart?startDate=2026-02-01T00:00:00Z&endDate=2026-02-03T23:59:59Z&interval=minute&groupBy=event',
  );
  const cells = page.locator('table.numbers td');
  await shown(page.locator('.chart canvas'));
  expect(await cells.count()).toBe(0);
  await openMore(page);
  await page.getByText('All numbers', { exact: true }).click();
  await shown(page.getByText(/^1 to [\d,]+ of 4,320$/));
  expect(await cells.count()).toBeLessThanOrEqual(5_000);
  const first = await page.locator('table.numbers time').first().getAttribute('datetime');
  await page.getByRole('button', { name: 'Later' }).click();
  await eventually(() => page.locator('table.numbers time').first().getAttribute('datetime')).not.toBe(first);
  expect(await cells.count()).toBeLessThanOrEqual(5_000);
  expect(faults).toEqual([]);
});

test('bars of many groups are stacked or charts of their own; legends of a funnel and a curve fade and hide', async () => {
  const { page, faults } = await openSignedInConsole(
    { pipeline: funnel, browser },
    `#/explore?${MONTHS}&groupBy=event,properties.plan&form=bar`,
    { zone: 'UTC' },
  );
  await shown(page.getByText('More than four groups are stacked.'));
  await shown(page.locator('.chart canvas'));
  const show = (query: string) => page.goto(`${funnel.services['query-api'].url}/console/#/explore?${query}&${MONTHS}`);
  await show('event=signed_up&measure=avg:properties.amount&groupBy=userId&form=bar');
  await shown(page.getByText('More than four groups have a chart each, with one scale.'));
  expect(await page.locator('.small-charts figure').count()).toBeGreaterThan(4);
  await expectAccessible(page, 'explore-small-charts');
  for (const [query, list, drawn, count] of [
    ['report=funnel&steps=signed_up,paid', 'Groups of the funnel', '.bar-of', 2],
    ['report=retention&event=signed_up&interval=week', 'Groups of the curve', '.curve', 1],
  ] as const) {
    await show(`${query}&groupBy=properties.plan`);
    const name = page.getByRole('list', { name: list }).getByRole('button', { name: 'pro', exact: true });
    await name.hover();
    await eventually(() => page.locator(`${drawn}.faded`).count()).toBe(count);
    await tabTo(page, name);
    await page.keyboard.press('Space');
    await eventually(() => page.locator(drawn).count()).toBe(count);
    await page.keyboard.press('Space');
    await eventually(() => page.locator(drawn).count()).toBe(2 * count);
  }
  expect(faults).toEqual([]);
});

test('a slow report is cancelled and asked again, and one that fails says why', async () => {
  const { page } = await openSignedInConsole({ pipeline: funnel, browser }, '#/events');
  const { url } = funnel.services['query-api'];
  await page.route('**/events/series?*', () => undefined);
  await page.goto(`${url}/console/#/explore?${MONTHS}`);
  await shown(page.locator('.skeleton'));
  await page.getByRole('button', { name: 'Cancel' }).click();
  await shown(page.getByText('Cancelled.'));
  await page.unroute('**/events/series?*');
  await page.route('**/events/series?*', (route) => route.abort());
  await page.getByRole('button', { name: 'Try again' }).click();
  await shown(page.getByText('query-api does not respond.'));
  await page.unroute('**/events/series?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await shown(page.locator('.chart canvas'));
});
