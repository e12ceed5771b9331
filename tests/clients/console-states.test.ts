import { until } from '@sluice/shared/testing/until';
import type { Browser } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible, looks, openSignedInConsole, tourOf } from '../kit/clients/console-page.ts';
import { shown, takePicture } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;
let browser: Browser;

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consolestates'), sharedBrowser()]);
  const events = [{ event: 'opened', timestamp: new Date().toISOString() }];
  await pipeline.submit({ foreignUserGroupId: 'acme', foreignUserId: 'jane', events });
  await pipeline.settled(1);
});

/** Each page that loads something, and a text that it shows then. */
const PAGES: Readonly<Record<string, string | RegExp>> = {
  home: 'Nothing happened yesterday.',
  events: '1 of 1 event.',
  explore: 'Total 1.',
  users: /^First seen$/,
  organizations: /^First seen$/,
  'users/jane': 'All 1 event.',
  'organizations/acme': 'All 1 event.',
  dashboards: 'There are no dashboards.',
  views: 'There are no saved views.',
  pipeline: 'Nothing needs attention.',
  alerts: 'There are no alerts.',
  webhooks: 'There are no webhooks.',
  keys: 'Keys of the workspace',
  'dead-letters': 'No dead letter waits to be replayed.',
};

const tour = tourOf(() => ({ pipeline, browser }));

test.each(Object.keys(PAGES))(
  '%s: what is slow can be cancelled, and what fails says why; both are tried again',
  async (name) => {
    const { page, faults } = await tour.show('#/settings');
    const { url } = pipeline.services['query-api'];
    const isAsked = (asked: URL) => asked.origin === url && !asked.pathname.startsWith('/console');
    const alert = page.getByRole('alert').first();
    const again = page.getByRole('button', { name: 'Try again' }).first();
    await page.route(isAsked, () => undefined);
    await page.goto(`${url}/console/#/${name}`);
    const cancel = page.getByRole('button', { name: 'Cancel' }).first();
    await shown(cancel);
    await takePicture(page, `slow-${name.replace('/', '-')}`);
    await cancel.click();
    await shown(page.getByText('Cancelled.').first());
    await page.unroute(isAsked);
    await page.route(isAsked, (route) => route.abort());
    await again.click();
    await shown(alert.getByText('query-api does not respond.'));
    for (const width of looks([1280], [390])) {
      await page.setViewportSize({ width, height: 800 });
      await expectAccessible(page, `failed-${name.replace('/', '-')}`, `-${width}`);
    }
    await page.unroute(isAsked);
    await again.click();
    // The menu of columns has their names as well, and is closed.
    await shown(
      page
        .getByText(PAGES[name] ?? '')
        .filter({ visible: true })
        .first(),
    );
    expect(faults).toEqual([]);
  },
);

test('what is read again and again waits for the reading before', async () => {
  const { page } = await openSignedInConsole({ pipeline, browser }, '#/settings');
  const { url } = pipeline.services['query-api'];
  await page.clock.install();
  let asked = 0;
  await page.route(/\/pipeline$/, async (route) => {
    asked += 1;
    // All others get no response.
    if (asked === 1) await route.continue();
  });
  await page.goto(`${url}/console/#/pipeline`);
  await shown(page.getByText('Nothing needs attention.'));
  await page.clock.fastForward(10_000);
  // A page that is left cancels its readings, also one that has not reached the network.
  await until('the second reading', async () => asked > 1);
  for (let count = 0; count < 2; count += 1) await page.clock.fastForward(10_000);
  await page.goto(`${url}/console/#/events`);
  await shown(page.getByText('1 of 1 event.'));
  expect(asked).toBe(2);
});
