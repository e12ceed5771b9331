import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Tenant } from '../shared-pipeline.ts';

/** The month of most events of these tests. */
export const MONTHS = 'startDate=2026-02-01&endDate=2026-02-28';

/** Thirty users sign up in January and February; half of them pay an hour later, some come back the week after. */
export async function submitFunnel(tenant: Tenant): Promise<void> {
  for (let user = 0; user < 30; user += 1) {
    const start = Date.UTC(2026, user < 10 ? 0 : 1, 2 + (user % 10), 10);
    const at = (hours: number) => new Date(start + hours * 3_600_000).toISOString();
    const properties = { plan: user % 3 === 0 ? 'pro' : 'free', amount: user };
    const events = [
      { event: 'signed_up', timestamp: at(0), properties },
      ...(user % 2 === 0 ? [{ event: 'paid', timestamp: at(1), properties }] : []),
      ...(user % 5 === 0 ? [{ event: 'signed_up', timestamp: at(7 * 24), properties }] : []),
    ];
    const submission = { foreignUserGroupId: 'acme', foreignUserId: `user-${user}`, events };
    expect((await tenant.submit(submission)).status).toBe(202);
  }
}

/** Six users of six organizations sign up on the same day. Those on plan pro use a feature the day after, a free one at once. */
export async function submitOwners(owners: Tenant): Promise<void> {
  for (let index = 0; index < 6; index += 1) {
    const plan = index % 2 === 0 ? 'pro' : 'free';
    const [foreignUserGroupId, foreignUserId] = [`org-${index}`, `user-${index}`];
    const used = { event: 'feature_used', timestamp: `2026-02-0${plan === 'pro' ? 3 : 2}T12:00:00Z` };
    const events = [
      { event: 'signed_up', timestamp: '2026-02-02T10:00:00Z' },
      ...(plan === 'pro' || index === 1 ? [used] : []),
    ];
    const submission = { foreignUserGroupId, foreignUserId, events, properties: { plan } };
    expect((await owners.submit(submission)).status).toBe(202);
    const user = { foreignId: foreignUserId, properties: { country: index < 4 ? 'CH' : 'DE' } };
    expect((await owners.submit(user, { path: '/v1/public/users' })).status).toBe(202);
  }
}

/** Returns the text of each cell of a table. */
export async function cellsOf(page: Page, table: string | RegExp): Promise<string[][]> {
  const rows = page.getByRole('table', { name: table }).locator('tbody tr');
  return await rows.evaluateAll((all) =>
    all.map((row) => [...row.querySelectorAll('th, td')].map(({ textContent }) => textContent.trim())),
  );
}

/** Clicks in a page and types into it, and counts both. */
export function countedClicks(page: Page) {
  let count = 0;
  let typed = 0;
  const click = async (target: Locator) => {
    await target.click();
    count += 1;
  };
  /** Takes what an open list has. */
  const take = (option: RegExp) => click(page.getByRole('option', { name: option }));
  return {
    click,
    take,
    async choose(field: string, option: RegExp) {
      await click(page.getByLabel(field, { exact: true }));
      await take(option);
    },
    /** Adds a filter, whose lists open one after the other. */
    async filter(property: RegExp, value: RegExp) {
      await click(page.getByRole('button', { name: 'Add a filter' }));
      await take(property);
      await take(value);
    },
    /** The list of a browser opens by one click, and closes by another. */
    async select(target: Locator, option: string) {
      await target.selectOption(option);
      count += 2;
    },
    /** Types into what has the focus. */
    async type(text: string) {
      await page.keyboard.insertText(text);
      typed += 1;
    },
    /** Returns how many there were since the last call. */
    clicks() {
      const since = count;
      count = 0;
      return since;
    },
    /** Returns how many fields were typed into. */
    typed: () => typed,
  };
}
