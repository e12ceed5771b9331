import { eventually } from '@sluice/shared/testing/eventually';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible, openSignedInConsole } from '../kit/clients/console-page.ts';
import { shown, tabTo } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;
let browser: Browser;

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consolepeople'), sharedBrowser()]);
  const people = [
    ['u-17', { name: 'Ann Lee', email: 'ann@example.com', nick: 'annie', plan: 'pro' }],
    ['u-18', { email: 'bo@example.com' }],
    ['u-19', {}],
  ] as const;
  for (const [index, [foreignUserId, properties]] of people.entries()) {
    const timestamp = (minute: number) =>
      new Date(Date.now() - 3_600_000 + (10 * index + minute) * 60_000).toISOString();
    const events = [
      { event: 'signed_up', timestamp: timestamp(0) },
      { event: 'payment_failed', timestamp: timestamp(1) },
    ];
    const submission = { foreignUserGroupId: 'acme', foreignUserId, events };
    expect((await pipeline.submit(submission)).status).toBe(202);
    const user = { foreignId: foreignUserId, properties };
    expect((await pipeline.submit(user, { path: '/v1/public/users' })).status).toBe(202);
  }
  const group = { foreignUserGroupId: 'acme', properties: { name: 'Acme Corp' }, events: [] };
  expect((await pipeline.submit(group)).status).toBe(202);
  await pipeline.drained();
});

const open = (hash: string) => openSignedInConsole({ pipeline, browser }, hash, { zone: 'UTC' });

const goTo = (page: Page, hash: string) => page.goto(`${pipeline.services['query-api'].url}/console/${hash}`);

const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true });

test('lists, titles, members, events and the people of a funnel show names, which a workspace says by its settings', async () => {
  const { page, faults } = await open('#/users');
  for (const name of ['Ann Lee u-17', 'bo@example.com u-18', 'u-19']) await shown(link(page, name));
  await expectAccessible(page, 'people-users');
  await link(page, 'Ann Lee u-17').click();
  await shown(page.getByRole('heading', { level: 1, name: 'user Ann Lee u-17' }));
  await eventually(() => page.title()).toBe('Ann Lee · Sluice');
  await shown(page.getByRole('region', { name: 'Organizations' }).getByRole('link', { name: 'Acme Corp acme' }));
  await expectAccessible(page, 'people-user');
  await goTo(page, '#/organizations/acme');
  await shown(page.getByRole('region', { name: 'Users' }).getByRole('link', { name: 'Ann Lee u-17' }));
  await goTo(page, '#/events?event=payment_failed');
  await shown(link(page, 'bo@example.com u-18'));
  const month = new Date(Date.now() - 20 * 86_400_000).toISOString().slice(0, 10);
  await goTo(page, `#/people?report=funnel&steps=signed_up,payment_failed&step=2&startDate=${month}`);
  await shown(link(page, 'Ann Lee u-17'));

  await goTo(page, '#/settings');
  const name = page.getByLabel('Users: name');
  await tabTo(page, name);
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type('title + nick, plan');
  await page.keyboard.press('Enter');
  await shown(page.getByText('It is stored.'));
  await expectAccessible(page, 'people-settings');
  await page.keyboard.press('Escape');
  await goTo(page, '#/users');
  await shown(link(page, 'annie u-17'));
  await goTo(page, '#/settings');
  await page.getByRole('button', { name: 'Use the usual properties' }).click();
  await shown(page.getByText('It is the usual again.'));
  const usual = 'name, fullName, full_name, firstName + lastName, first_name + last_name';
  await eventually(() => name.inputValue()).toBe(usual);
  expect(faults).toEqual([]);
});

const dialogOf = (page: Page) => page.getByRole('dialog', { name: 'Search' });
const chosenOf = (page: Page) => dialogOf(page).getByRole('option', { selected: true });

test('from an e-mail address to its user: open the search, type, Enter', async () => {
  const { page, faults } = await open('#/events');
  // From a field, too.
  await tabTo(page, page.getByLabel('Event', { exact: true }));
  await page.keyboard.press('ControlOrMeta+K');
  await shown(dialogOf(page));
  await page.keyboard.insertText('ann@example.com');
  // Before the answer is there.
  await page.keyboard.press('Enter');
  await shown(page.getByRole('heading', { level: 1, name: 'user Ann Lee u-17' }));
  expect(await dialogOf(page).count()).toBe(0);
  expect(faults).toEqual([]);
});

test('one search has people, events, what is saved, pages and actions, by keyboard and by pointer', async () => {
  const dashboard = await fetch(`${pipeline.services['query-api'].url}/dashboards`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Acme payments', tiles: [] }),
  });
  expect(dashboard.status).toBe(201);
  const { page, faults } = await open('#/users');
  const filter = page.getByLabel('Identifier', { exact: true });
  await filter.fill('a');
  await filter.press('/');
  expect(await filter.inputValue()).toBe('a/');
  expect(await dialogOf(page).count()).toBe(0);

  await page.locator('main').focus();
  await page.keyboard.press('/');
  await shown(dialogOf(page).getByRole('option', { name: 'Home', selected: true }));
  await expectAccessible(page, 'search-empty');
  await page.keyboard.type('acme');
  for (const [group, name] of [
    ['Organizations', 'Acme Corp acme'],
    ['Dashboards', 'Acme payments'],
  ] as const) {
    await shown(dialogOf(page).getByRole('group', { name: group }).getByRole('option', { name }));
  }
  await expectAccessible(page, 'search');
  await eventually(() => chosenOf(page).textContent()).toContain('Acme payments');
  await page.keyboard.press('ArrowDown');
  await eventually(() => chosenOf(page).textContent()).toContain('Acme Corp');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await shown(page.getByRole('heading', { level: 1, name: 'Acme payments' }));

  await page.setViewportSize({ width: 390, height: 800 });
  await page.getByRole('button', { name: 'Search' }).click();
  await page.keyboard.type('payment');
  await shown(dialogOf(page).getByRole('option', { name: /payment_failed/ }));
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  await expectAccessible(page, 'search', '-390');
  await page.keyboard.press('Escape');
  await eventually(() => dialogOf(page).count()).toBe(0);
  expect(await page.locator(':focus').getAttribute('aria-label')).toBe('Search');
  await page.keyboard.press('Enter');
  // Once more before the browser has told that the dialog is closed: it is open all the same.
  await shown(dialogOf(page));
  await page.evaluate(
    `document.querySelector('dialog.search').close(); document.querySelector('button[aria-label="Search"]').click()`,
  );
  await shown(dialogOf(page));
  await page.keyboard.type('payment');
  await dialogOf(page)
    .getByRole('option', { name: /payment_failed/ })
    .click();
  await shown(page.getByRole('heading', { level: 1, name: 'Events' }));
  await page.keyboard.press('/');
  await page.keyboard.type('theme dark');
  await page.keyboard.press('Enter');
  await shown(page.getByRole('button', { name: 'Theme: dark' }));
  expect(faults).toEqual([]);
});

test('a list is one stop of Tab, its rows are reached by arrows and letters, and its columns are chosen and stay', async () => {
  const { page, faults } = await open('#/users');
  const focused = () => page.evaluate('document.activeElement.textContent');
  await tabTo(page, link(page, 'u-19'));
  await page.keyboard.press('ArrowDown');
  await eventually(focused).toBe('bo@example.com u-18');
  await page.keyboard.press('j');
  await eventually(focused).toBe('Ann Lee u-17');
  await page.keyboard.press('Tab');
  expect(await page.evaluate(`document.activeElement.closest('table')`)).toBeNull();
  await page.keyboard.press('Shift+Tab');
  await eventually(focused).toBe('Ann Lee u-17');
  await page.keyboard.press('Home');
  await eventually(focused).toBe('u-19');

  const headings = () => page.getByRole('columnheader').allTextContents();
  await tabTo(page, page.locator('summary', { hasText: 'Columns' }));
  await page.keyboard.press('Enter');
  await page.getByRole('checkbox', { name: 'plan' }).check();
  await page.getByRole('checkbox', { name: 'First seen' }).uncheck();
  await eventually(headings).toEqual(['User', 'Last seen', 'Properties', 'plan']);
  await expectAccessible(page, 'people-columns');
  await page.reload();
  await eventually(headings).toEqual(['User', 'Last seen', 'Properties', 'plan']);
  await page.locator('summary', { hasText: 'Columns' }).click();
  await page.getByRole('button', { name: 'The usual columns' }).click();
  await eventually(headings).toEqual(['User', 'Last seen', 'First seen', 'Properties']);

  await goTo(page, '#/events?event=payment_failed&groupId=acme');
  await eventually(headings).toEqual(['Time', 'Event', 'User']);
  await tabTo(page, link(page, 'payment_failed').first());
  await page.keyboard.press('ArrowRight');
  await eventually(focused).toBe('u-19');
  await page.keyboard.press('End');
  await eventually(focused).toBe('Ann Lee u-17');
  expect(faults).toEqual([]);
});
