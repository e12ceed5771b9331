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
  await goTo(page, '#/events?event=payment_failed&userId=u-18');
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
  expect(await name.inputValue()).toBe('name, fullName, full_name, firstName + lastName, first_name + last_name');
  expect(faults).toEqual([]);
});
