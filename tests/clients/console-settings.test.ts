import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import type { Browser } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible, openMore, openSignedInConsole, takePictures } from '../kit/clients/console-page.ts';
import { shown, tabTo } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;
let browser: Browser;

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consolesettings'), sharedBrowser()]);
  // 21:30 in New York on Saturday, and 02:30 in Berlin on Sunday, 2026-03-01.
  const events = [{ event: 'signed_up', timestamp: '2026-03-01T02:30:00Z' }];
  await pipeline.submit({ foreignUserGroupId: 'acme', foreignUserId: 'jane', events });
  await pipeline.drained();
});

test('the time zone and the week of the settings count in lists and charts, and stay', async () => {
  const { page, context, faults } = await openSignedInConsole({ pipeline, browser }, '#/settings');
  await tabTo(page, page.getByLabel('Time zone'));
  await page.keyboard.type('America/New_Yor');
  await shown(page.getByText('"America/New_Yor" is not the name of a time zone'));
  await page.keyboard.type('k');
  await shown(page.getByText(/^Now it is/));
  await tabTo(page, page.getByLabel('Weeks begin on'));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await eventually(() => page.getByLabel('Weeks begin on').inputValue()).toBe('sunday');

  await page.goto(page.url().replace(/#.*/, '#/events'));
  await shown(page.getByText('28 Feb 2026, 21:30:00'));
  // A day from and to is one of the time zone; its week begins on the Sunday before.
  await page.goto(page.url().replace(/#.*/, '#/chart?startDate=2026-02-28&endDate=2026-02-28&interval=week'));
  await shown(page.getByText('Total 1.'));
  await shown(page.getByText('28 Feb 2026, 00:00:00'));
  await openMore(page);
  await page.getByText('All numbers', { exact: true }).click();
  await shown(page.getByRole('rowheader', { name: '22 Feb 2026' }));

  // Another tab of the same browser has them as well, and takes over what is changed.
  const other = await context.newPage();
  await other.goto(page.url().replace(/#.*/, '#/settings'));
  await other.getByLabel('API key').fill(pipeline.key);
  await other.keyboard.press('Enter');
  await eventually(() => other.getByLabel('Time zone').inputValue()).toBe('America/New_York');
  await other.getByLabel('Time zone').fill('');
  await page.goto(page.url().replace(/#.*/, '#/events'));
  await shown(page.getByText('1 Mar 2026, 03:30:00'));
  expect(faults).toEqual([]);
});

test('the theme is chosen in the header or the settings, counts for charts as well, and stays', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/settings');
  const ground = () =>
    page.evaluate(
      "getComputedStyle(document.querySelector('body')).colorScheme + getComputedStyle(document.documentElement).backgroundColor",
    );
  expect(await ground()).toBe('light darkrgb(255, 255, 255)');
  const theme = (name: string) => page.getByRole('button', { name: `Theme: ${name}` });
  await tabTo(page, theme('system'));
  await page.keyboard.press('Enter');
  await shown(theme('light'));
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await ground()).toBe('lightrgb(255, 255, 255)');
  await page.keyboard.press('Enter');
  await shown(theme('dark'));
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await ground()).toBe('darkrgb(18, 22, 28)');
  // Before the script has come as well: otherwise the page is painted in other colors first.
  const { promise: held, resolve: goOn } = Promise.withResolvers<void>();
  await page.route(/\/script-/, (route) => held.then(() => route.continue()));
  const requested = page.waitForRequest(/\/script-/);
  const reloaded = page.reload();
  await requested;
  await eventually(() => page.evaluate('document.documentElement.style.colorScheme')).toBe('dark');
  expect(await page.getByRole('button').count()).toBe(0);
  goOn();
  await reloaded;
  await shown(theme('dark'));
  expect(await ground()).toBe('darkrgb(18, 22, 28)');
  await page.getByLabel('Colors').selectOption('As the system');
  await shown(theme('system'));
  expect(await ground()).toBe('light darkrgb(255, 255, 255)');
  expect(faults).toEqual([]);
});

test('keys open pages and list themselves, are text in a field, and can be turned off', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/home');
  await page.keyboard.press('?');
  await shown(page.getByRole('dialog', { name: 'Keys' }));
  await page.keyboard.press('Escape');
  const events = page.getByRole('heading', { name: 'Events', level: 1 });
  // Again where a busy machine takes longer for two keys than they belong together.
  await until('the page of events', async () => {
    await page.keyboard.press('g');
    await page.keyboard.press('e');
    return await events.isVisible();
  });
  const field = page.getByLabel('Event', { exact: true });
  await field.focus();
  await page.keyboard.type('g?u/');
  expect(await field.inputValue()).toBe('g?u/');
  expect(await page.getByRole('dialog').count()).toBe(0);
  await page.goto(page.url().replace(/#.*/, '#/settings'));
  await page.getByLabel('open pages').click();
  await page.locator('main').focus();
  await page.keyboard.press('?');
  await page.keyboard.press('g');
  await page.keyboard.press('u');
  await shown(page.getByRole('heading', { name: 'Settings', level: 1 }));
  expect(await page.getByRole('dialog').count()).toBe(0);
  expect(faults).toEqual([]);
});

test('an admin makes a proposed property fast, sees how far its columns are, and withdraws it after a question', async () => {
  const properties = { plan: 'pro', order: { total: 5 } };
  await pipeline.submit({ foreignUserGroupId: 'acme', events: [{ event: 'paid', properties }] });
  await pipeline.drained();
  await pipeline.get('/events/series?startDate=2026-01-01&groupBy=properties.plan&measure=sum:properties.order.total');
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/settings');
  const proposed = page.getByRole('region', { name: 'Proposed properties' });
  await shown(proposed.getByRole('row', { name: /^order\.total .* not possible: its name has a dot$/ }));
  await expectAccessible(page, 'fast-proposed');
  await tabTo(page, proposed.getByRole('button', { name: 'Make it fast plan' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('plan is fast for events that are stored from now on.'));
  const fast = page.getByRole('region', { name: 'Declared properties' });
  await shown(fast.getByRole('row', { name: /^plan/ }));
  await shown(page.getByText(/^0% of 2 events have these columns/));
  await expectAccessible(page, 'fast-declared');
  await page.setViewportSize({ width: 390, height: 844 });
  await takePictures(page, 'fast-declared', '-390');
  await eventually(() => page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  await fast.getByRole('button', { name: 'Withdraw plan' }).click();
  await shown(fast.getByText('Its reports become slower, and its columns are emptied.'));
  expect((await pipeline.get('/properties/fast')).body).toEqual({ properties: ['plan'] });
  await fast.getByRole('button', { name: 'Withdraw it' }).click();
  await shown(page.getByText('No property is fast yet.'));
  expect(faults).toEqual([]);
});

test('an admin says for everybody that visitors are nobody, and a list that chooses otherwise has their users', async () => {
  const visit = { type: 'track', event: 'browsed', anonymousId: 'tablet' };
  await pipeline.submit({ batch: [visit, { ...visit, event: 'signed', userId: 'vera' }] }, { path: '/v1/batch' });
  await pipeline.drained();
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/settings');
  const form = page.getByRole('form', { name: 'Visitors before they sign in' });
  const visitors = form.getByLabel('Lists and reports: visitors');
  await shown(visitors);
  expect(await visitors.inputValue()).toBe('linked');
  await visitors.selectOption('are nobody');
  await form.getByRole('button', { name: 'Save it for everybody' }).click();
  await shown(page.getByText('It is stored.'));
  expect(await visitors.inputValue()).toBe('raw');
  expect((await pipeline.get('/identities/settings')).body).toEqual({ identity: 'raw' });
  await page.goto(page.url().replace(/#.*/, '#/events?userId=vera'));
  await shown(page.getByRole('link', { name: 'signed' }));
  expect(await page.getByRole('link', { name: 'browsed' }).count()).toBe(0);
  await page.getByLabel('Visitors before they sign in').selectOption('are the users that they become');
  await page.getByRole('button', { name: 'Apply' }).click();
  await shown(page.getByRole('link', { name: 'browsed' }));
  expect(faults).toEqual([]);
});

test('axe-core finds nothing in the settings and the list of keys', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/settings');
  await shown(page.getByLabel('Time zone'));
  await expectAccessible(page, 'settings');
  await page.locator('main').focus();
  await page.keyboard.press('?');
  await shown(page.getByRole('dialog', { name: 'Keys' }));
  await expectAccessible(page, 'keys-help');
  expect(faults).toEqual([]);
});
