import { Receiver } from '@sluice/query-api/testing/webhooks';
import { until } from '@sluice/shared/testing/until';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectAccessible, openSignedInConsole } from '../kit/clients/console-page.ts';
import { shown, tabTo } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

const stack = new AsyncDisposableStack();
let pipeline: Tenant;
let browser: Browser;
let receiver: Receiver;

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consolealerts'), sharedBrowser()]);
  receiver = stack.use(await Receiver.start());
});
afterAll(() => stack.disposeAsync());

async function post(path: string, body: object): Promise<{ readonly id: string }> {
  const response = await fetch(`${pipeline.services['query-api'].url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(201);
  return (await response.json()) as { readonly id: string };
}

/** How wide what a page shows is, beyond what the window shows of it. */
const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';

test('an alert is made from a saved view by keyboard, fires, is tested, changed and turned off', async () => {
  await post('/views', { name: 'Payments', report: 'series', parameters: { event: 'paid', form: 'number' } });
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/views');
  await tabTo(page, page.getByRole('link', { name: 'Payments', exact: true }));
  const link = page.getByRole('link', { name: 'Alert … Payments' });
  await until('the link to have the focus', async () => {
    await page.keyboard.press('ArrowRight');
    return await link.evaluate((element) => element === element.ownerDocument.activeElement);
  });
  await page.keyboard.press('Enter');
  await shown(page.getByText('There are no alerts.'));
  const form = page.getByRole('form', { name: 'New alert' });
  await shown(form);
  await form.getByLabel('Name').fill('Few payments');
  await form.getByLabel('Limit').fill('5');
  await form.getByLabel('Unit').selectOption('days');
  await form.getByLabel('Address').fill(receiver.url);
  await page.keyboard.press('Enter');
  await shown(page.getByText('The alert is created.'));
  await shown(page.getByRole('heading', { name: 'The secret of its messages' }));
  await expectAccessible(page, 'alerts');

  await until('the message', async () => receiver.received.length > 0);
  await page.getByRole('link', { name: 'Few payments' }).click();
  await shown(page.getByText('Payments: below 5 in the last day. State: firing.'));
  await shown(page.getByRole('cell', { name: 'alert', exact: true }));
  await tabTo(page, page.getByRole('button', { name: 'Send a test' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('The receiver responded 204'));
  await page.locator('summary', { hasText: 'Change it' }).click();
  const change = page.getByRole('form', { name: 'Alert' });
  await change.getByLabel('Fires while it').selectOption('is above');
  await change.getByRole('button', { name: 'Save' }).click();
  await shown(page.getByText('It is saved, and judged anew.'));
  await shown(page.getByText('Payments: above 5 in the last day. State: ok.'));
  expect(await change.getByLabel('Fires while it').inputValue()).toBe('above');
  await expectAccessible(page, 'alert');
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await page.evaluate(OVERFLOW)).toBe(0);
  await page.getByRole('button', { name: 'Pause' }).click();
  await shown(page.getByText('State: off, was ok.'));
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete it' }).click();
  await shown(page.getByText('There are no alerts.'));
  expect(await page.evaluate(OVERFLOW)).toBe(0);
  expect(faults).toEqual([]);
});

test('a digest is made from its dashboard, tested and deleted', async () => {
  const view = await post('/views', { name: 'All', report: 'series', parameters: { form: 'number' } });
  const dashboard = await post('/dashboards', { name: 'Morning', tiles: [{ view: view.id, width: 1 }] });
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, `#/dashboards/${dashboard.id}`);
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.getByRole('link', { name: 'Send its numbers once a day …' }).click();
  const form = page.getByRole('form', { name: 'New digest' });
  await form.getByLabel('Address').fill(receiver.url);
  await form.getByLabel('Format').selectOption('as Slack takes them');
  await form.getByRole('button', { name: 'Create a digest' }).click();
  await shown(page.getByText('The digest is created.'));
  await shown(page.getByRole('row', { name: /^Morning 8:00, Europe\/Berlin ok/ }));
  await page.getByRole('link', { name: 'Morning' }).click();
  await shown(page.getByRole('heading', { name: 'Digest of Morning' }));
  const before = receiver.received.length;
  await page.getByRole('button', { name: 'Send a test' }).click();
  await shown(page.getByText('The receiver responded 204'));
  expect(receiver.received.slice(before).map(({ body }) => JSON.parse(body).text)).toEqual(['Test of a digest.']);
  await expectAccessible(page, 'digest');
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete it' }).click();
  await shown(page.getByText('There are no digests.'));
  expect(faults).toEqual([]);
});
