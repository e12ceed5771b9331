import { Receiver } from '@sluice/query-api/testing/webhooks';
import { eventually } from '@sluice/shared/testing/eventually';
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
  [pipeline, browser] = await Promise.all([takeTenant('consolewebhooks'), sharedBrowser()]);
  receiver = stack.use(await Receiver.start());
});
afterAll(() => stack.disposeAsync());

test('webhooks are listed, and one is tested, paused and resumed by keyboard', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/webhooks');
  await shown(page.getByText('There are no webhooks.'));
  await page.clock.install();
  const response = await fetch(`${pipeline.services['query-api'].url}/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver.url, filter: { event: 'paid' } }),
  });
  expect(response.status).toBe(201);
  await page.reload();
  const link = page.getByRole('link', { name: receiver.url });
  await shown(page.getByRole('row', { name: `${receiver.url} Event is paid, one by one active` }));
  await tabTo(page, link);
  await page.keyboard.press('Enter');
  await shown(page.getByText('Nothing was sent yet.'));

  await tabTo(page, page.getByRole('button', { name: 'Send a test' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('The receiver responded 204'));
  const attempt = page.getByRole('table', { name: /last attempts/ }).getByRole('cell', { name: 'test', exact: true });
  await until('the attempt to be listed', async () => {
    // The page reads again this often.
    await page.clock.fastForward(5_000);
    return await attempt.isVisible();
  });

  await tabTo(page, page.getByRole('button', { name: 'Pause' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('State: paused: by a request'));
  expect(
    (await pipeline.submit({ foreignUserGroupId: 'acme', events: [{ event: 'paid' }, { event: 'other' }] })).status,
  ).toBe(202);
  await pipeline.settled(2);
  await tabTo(page, page.getByRole('button', { name: 'Resume' }));
  await page.keyboard.press('Enter');
  await shown(page.getByText('State: active'));
  await eventually(() => receiver.received.map(({ body }) => JSON.parse(body).type)).toEqual(['test', 'event']);
  expect(faults).toEqual([]);
});

test('axe-core finds nothing on the pages of webhooks', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/webhooks');
  await shown(page.getByRole('table', { name: 'Webhooks' }));
  await expectAccessible(page, 'webhooks');
  await page.getByRole('link', { name: receiver.url }).click();
  await shown(page.getByRole('table', { name: /last attempts/ }));
  await expectAccessible(page, 'webhook');
  expect(faults).toEqual([]);
});
