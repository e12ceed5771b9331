import { eventually } from '@sluice/shared/testing/eventually';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { expectAccessible, openConsole, openSignedInConsole, takePictures } from '../kit/clients/console-page.ts';
import { arrowTo, overflowOf, shown, tabTo, takePicture } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;
let browser: Browser;

/** A name as hostile as one may be, in a direction of its own. */
const STRANGE = '<b>مرحبا</b> 🚀 "x"';

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consoleviews'), sharedBrowser()]);
  const events = ['signed_up', 'paid', 'paid'].map((event) => ({ event, properties: { plan: 'pro' } }));
  expect((await pipeline.submit({ foreignUserGroupId: 'acme', foreignUserId: 'jane', events })).status).toBe(202);
  await pipeline.settled(3);
});

/** Sends a request to query-api with the key of the pipeline, and returns what it creates. */
async function create(path: string, body: object): Promise<{ readonly id: string; readonly key: string }> {
  const response = await fetch(`${pipeline.services['query-api'].url}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(201);
  return (await response.json()) as { id: string; key: string };
}

async function press(page: Page, name: string | RegExp, within: Pick<Page, 'getByRole'> = page): Promise<void> {
  await tabTo(page, within.getByRole('button', { name, exact: typeof name === 'string' }));
  await page.keyboard.press('Enter');
}

/** The names of the tiles in their order. */
const tilesOf = (page: Page) => page.locator('.tile h2').allTextContents();

test('a view is saved, opened, renamed and deleted by keyboard', async () => {
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/chart?event=paid&range=7d');
  await shown(page.getByText('Total 2.'));
  await press(page, 'Save');
  await page.keyboard.type(STRANGE);
  await page.keyboard.press('Enter');
  await shown(page.getByText('Saved as'));
  await tabTo(page, page.getByRole('link', { name: 'Views', exact: true }).last());
  await page.keyboard.press('Enter');
  const link = page.getByRole('link', { name: STRANGE, exact: true });
  await shown(link);
  await tabTo(page, link);
  await page.keyboard.press('Enter');
  await shown(page.getByText('Total 2.'));
  expect(page.url()).toContain('event=paid');
  await page.goBack();
  await press(page, `Rename ${STRANGE}`);
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type('Payments');
  await page.keyboard.press('Enter');
  await shown(page.getByText('is now “Payments”.'));
  await press(page, 'Delete Payments');
  await press(page, 'Delete it');
  await shown(page.getByText('“Payments” is deleted.'));
  await shown(page.getByText('There are no saved views.'));
  expect(faults).toEqual([]);
});

test('arrows go from view to view, Tab through the buttons of one; keys in a field are of the field', async () => {
  for (const name of ['Zero', 'One', 'Two']) await create('views', { name, report: 'series', parameters: {} });
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/views');
  const focused = () => page.evaluate('document.activeElement.textContent');
  await tabTo(page, page.getByRole('link', { name: 'Zero', exact: true }));
  await page.keyboard.press('ArrowDown');
  expect(await focused()).toBe('One');
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Rename One');
  await page.keyboard.press('Enter');
  const field = page.getByLabel('New name');
  for (const key of ['ArrowDown', 'Home', 'ArrowRight', 'ArrowLeft', 'ArrowUp']) await page.keyboard.press(key);
  await page.keyboard.type('N');
  expect(await field.inputValue()).toBe('NOne');
  for (const name of ['Rename', 'Cancel']) {
    await page.keyboard.press('Tab');
    expect(await focused()).toBe(name);
  }
  await page.keyboard.press('Enter');
  expect(await focused()).toBe('Rename One');
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Delete One');
  await page.keyboard.press('ArrowUp');
  expect(await focused()).toBe('Rename Zero');
  await page.keyboard.press('Shift+Tab');
  expect(await focused()).toBe('Zero');
  for (let count = 0; count < 3; count += 1) await page.keyboard.press('Tab');
  expect(await page.evaluate(`document.activeElement.closest('table')`)).toBeNull();
  // What is deleted leaves the focus to the row in its place, the last one to the row before.
  for (const [deleted, next] of [
    ['One', 'Two'],
    ['Two', 'Zero'],
  ] as const) {
    await arrowTo(page, page.getByRole('link', { name: deleted, exact: true }));
    await press(page, `Delete ${deleted}`);
    await page.keyboard.press('Enter');
    await eventually(focused).toBe(next);
  }
  await removeViews();
  expect(faults).toEqual([]);
});

/** Deletes all views of the workspace. */
async function removeViews(): Promise<void> {
  for (const { id } of (await pipeline.get<{ views: { id: string }[] }>('/views')).body.views) {
    const { url } = pipeline.services['query-api'];
    await fetch(`${url}/views/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${pipeline.key}` } });
  }
}

test('a view that was opened is changed, also after its form was, or saved as a new one', async () => {
  const view = { name: 'Changed', report: 'series', parameters: { event: 'paid', range: '7d' } };
  const { id } = await create('views', view);
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/views');
  await page.getByRole('link', { name: 'Changed', exact: true }).click();
  await shown(page.getByText('Total 2.'));
  await page.getByLabel('Event', { exact: true }).fill('signed_up');
  await page.keyboard.press('Enter');
  await shown(page.getByText('Total 1.'));
  await press(page, 'Update “Changed”');
  await shown(page.getByText('Saved as “Changed”'));
  const stored = async () => (await pipeline.get<{ views: { id: string }[] }>('/views')).body.views;
  await eventually(stored).toMatchObject([{ id, parameters: { event: 'signed_up', timeZone: 'Europe/Berlin' } }]);
  // Another report is not the one that was saved.
  await page.getByLabel('Event', { exact: true }).fill('paid');
  await page.keyboard.press('Enter');
  await shown(page.getByText('Total 2.'));
  expect(await page.getByText('Saved as “Changed”').count()).toBe(0);
  await page.goBack();
  await shown(page.getByText('Total 1.'));
  await shown(page.getByText('Saved as “Changed”'));
  await press(page, 'Save as a new view');
  await page.keyboard.type('Another');
  await page.keyboard.press('Enter');
  await eventually(stored).toMatchObject([
    { name: 'Changed' },
    { name: 'Another', parameters: { event: 'signed_up' } },
  ]);
  expect(JSON.stringify(await stored())).not.toContain('"view"');
  // Where it is gone, it can be saved as a new one only.
  await removeViews();
  await page.reload();
  await shown(page.getByText('Total 1.'));
  await shown(page.getByRole('button', { name: 'Save as a new view' }));
  expect(await page.getByRole('button', { name: /^Update/ }).count()).toBe(0);
  expect(faults).toEqual([]);
});

test('a view is saved on a new dashboard and on one that there is, by keyboard', async () => {
  const { page, faults } = await openSignedInConsole(
    { pipeline, browser },
    '#/explore?event=paid&range=7d&form=number',
  );
  await shown(page.getByText('Total 2.'));
  for (const [name, dashboard] of [
    ['First', 'a new one'],
    ['Second', 'First'],
  ] as const) {
    await press(page, 'Save');
    await page.keyboard.type(name);
    await page.keyboard.press('Tab');
    await eventually(() => page.getByLabel('on dashboard').locator('option').allTextContents()).toContain(dashboard);
    await page.keyboard.type(dashboard);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await shown(page.getByText(`Saved as “${name}” in Views and on First.`));
  }
  await page.getByRole('status').getByRole('link', { name: 'First' }).click();
  await eventually(() => tilesOf(page)).toEqual(['First', 'Second']);
  const { url } = pipeline.services['query-api'];
  const headers = { authorization: `Bearer ${pipeline.key}` };
  await fetch(`${url}/${new URL(page.url()).hash.slice(2)}`, { method: 'DELETE', headers });
  await removeViews();
  expect(faults).toEqual([]);
});

test('a dashboard is made, reordered by keyboard and shared, and its link works until it is revoked', async () => {
  for (const [name, parameters] of [
    ['Payments', { event: 'paid', range: '7d', form: 'number' }],
    ['All by name', { groupBy: 'event', range: '7d', interval: 'day' }],
  ] as const) {
    await create('views', { name, report: 'series', parameters: { ...parameters, timeZone: 'Europe/Berlin' } });
  }
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/dashboards');
  await shown(page.getByText('There are no dashboards.'));
  await tabTo(page, page.getByLabel('Name of a new dashboard'));
  await page.keyboard.type('Morning');
  await page.keyboard.press('Enter');
  await shown(page.getByRole('heading', { name: 'Morning' }));
  await press(page, 'Add it');
  await eventually(() => tilesOf(page)).toEqual(['Payments']);
  await press(page, 'Add it');
  await eventually(() => tilesOf(page)).toEqual(['Payments', 'All by name']);

  const tile = page.getByRole('group', { name: 'Change Payments' });
  await press(page, 'Move later', tile);
  await shown(page.getByText('Payments is now 2 of 2.'));
  expect(await tilesOf(page)).toEqual(['All by name', 'Payments']);
  // The focus stays, so that it can be moved further.
  await page.keyboard.press('Enter');
  await shown(page.getByText('Payments is the last already.'));
  await press(page, 'Make wide', tile);
  await shown(page.getByText('Payments is now wide.'));
  await eventually(() => page.getByText('Saving …').count()).toBe(0);
  await page.reload();
  await eventually(() => tilesOf(page)).toEqual(['All by name', 'Payments']);
  await shown(page.locator('.width-2').getByRole('heading', { name: 'Payments' }));

  await press(page, 'Edit');
  await tabTo(page, page.getByLabel('Who or what it is for'));
  await page.keyboard.type('The hall');
  await page.keyboard.press('Enter');
  const address = page.getByLabel('The link, shown only now');
  await shown(address);
  const link = await address.inputValue();
  await takePicture(page, 'dashboard-edited-light');

  const wall = await openWall(link);
  const [, key = ''] = link.split('key=');
  await shown(wall.page.getByRole('heading', { name: 'Morning' }));
  await eventually(() => tilesOf(wall.page)).toEqual(['All by name', 'Payments']);
  await shown(wall.page.locator('.figure', { hasText: /^2$/ }));
  expect(await wall.page.evaluate('location.href')).not.toContain('key');
  expect(await wall.page.evaluate('history.length')).toBeLessThanOrEqual(2);
  expect(wall.requests.filter((url) => url.includes(key))).toEqual([]);
  // Names of a legend hide lines, on this screen alone.
  expect(await wall.page.locator('button:not(.legend button)').filter({ visible: true }).count()).toBe(0);
  expect(await wall.page.getByRole('navigation').count()).toBe(0);
  // Another page is none of the link.
  await wall.page.goto(`${pipeline.services['query-api'].url}/console/#/events`);
  await shown(wall.page.getByLabel('API key'));
  await wall.page.goBack();
  await shown(wall.page.getByRole('heading', { name: 'Morning' }));

  await press(page, 'Revoke The hall');
  await press(page, 'Revoke it');
  await shown(page.getByText('The link for “The hall” is revoked.'));
  await wall.page.reload();
  await shown(wall.page.getByText('This link was revoked, or its dashboard deleted.'));
  // A link that somebody made up hides the own dashboard no longer than until it is refused.
  const own = link.replace(/\?.*$/, '');
  await page.goto(`${own}?key=vk_made-up`);
  await press(page, 'Open it in the console');
  await shown(page.getByRole('navigation'));
  await shown(page.getByRole('heading', { name: 'Morning' }));
  expect([...faults, ...wall.faults]).toEqual([]);
});

/** Opens a link in a browser of its own, as a screen on a wall does. */
async function openWall(link: string) {
  const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin' });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const [faults, requests]: [string[], string[]] = [[], []];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(link);
  return { page, faults, requests };
}

test('a tile is dragged to another place, and one whose view was deleted says so', async () => {
  const tiles = await Promise.all(
    ['one', 'two', 'three'].map(async (name) => {
      const { id } = await create('views', { name, report: 'series', parameters: { form: 'number' } });
      return { view: id, width: 1 };
    }),
  );
  const { id } = await create('dashboards', { name: 'Dragged', tiles });
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, `#/dashboards/${id}`);
  await shown(page.getByRole('heading', { name: 'three' }));
  await page.getByRole('button', { name: 'Edit' }).click();
  // What comes above the tiles would move them while one is dragged.
  const all = page.getByText('All saved views are on this dashboard.');
  await shown(page.getByRole('button', { name: 'Add it' }).or(all));
  await page.getByRole('heading', { name: 'three' }).dragTo(page.getByRole('heading', { name: 'one' }));
  await eventually(() => tilesOf(page)).toEqual(['three', 'one', 'two']);
  const { url } = pipeline.services['query-api'];
  const headers = { authorization: `Bearer ${pipeline.key}` };
  const stored = async () => {
    const response = await fetch(`${url}/dashboards/${id}`, { headers });
    return ((await response.json()) as { readonly tiles: readonly object[] }).tiles;
  };
  await eventually(stored).toMatchObject([{ name: 'three' }, { name: 'one' }, { name: 'two' }]);
  await fetch(`${url}/views/${tiles[0]?.view}`, { method: 'DELETE', headers });
  await page.reload();
  await shown(page.getByText('The view of this tile was deleted.'));
  await press(page, 'Edit');
  await press(page, 'Remove', page.getByRole('group', { name: 'Change The deleted view' }));
  await shown(page.getByText('The deleted view is removed.'));
  await eventually(stored).toMatchObject([{ name: 'three' }, { name: 'two' }]);
  expect(faults).toEqual([]);
});

test('a key that may only read sees no links, and is told what it lacks', async () => {
  const { id } = await create('dashboards', { name: 'Mine', tiles: [] });
  const key = await pipeline.addKey('test', ['query']);
  const { page } = await openConsole({ pipeline, browser }, `#/dashboards/${id}`);
  await page.getByLabel('API key').fill(key);
  await page.keyboard.press('Enter');
  await shown(page.getByText('Only a key with the scope admin makes and revokes links.'));
  expect(await page.getByRole('button', { name: 'Make a link' }).count()).toBe(0);
});

test('a dashboard that does not exist says so', async () => {
  const { page } = await openSignedInConsole({ pipeline, browser }, '#/dashboards/nothing');
  await shown(page.getByText('The workspace has no such dashboard.'));
});

// tests/clients/console-dashboards.test.ts looks at a dashboard with all reports, and at its wall.
test('axe-core finds nothing on the lists of views and dashboards and on a dashboard that is edited, which fit a phone', async () => {
  const reports = [
    ['ALongNameOfOneWord'.repeat(8), 'series', { event: 'paid', form: 'number' }],
    ['Payments this week', 'series', { event: 'paid', range: '7d', form: 'number', compare: 'previous' }],
    [STRANGE, 'values', { property: 'properties.plan' }],
  ] as const;
  const tiles: { view: string; width: number }[] = [];
  for (const [name, report, parameters] of reports) {
    const { id } = await create('views', { name, report, parameters });
    tiles.push({ view: id, width: 1 });
  }
  const { id } = await create('dashboards', { name: 'Looked at', tiles });
  for (const name of ['The hall', 'TheScreenAtTheDoor'.repeat(8)]) await create(`dashboards/${id}/links`, { name });
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, '#/views');
  const look = async (name: string) => {
    await expectAccessible(page, name);
    for (const width of [390, 360]) {
      await page.setViewportSize({ width, height: 844 });
      // A chart takes the new width a moment later.
      await eventually(async () => [name, await overflowOf(page)]).toEqual([name, 0]);
      await takePictures(page, name, `-${width}`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  };
  await shown(page.getByRole('link', { name: STRANGE }).first());
  await look('views');
  await page.goto(`${pipeline.services['query-api'].url}/console/#/dashboards`);
  await shown(page.getByRole('link', { name: 'Looked at' }));
  await look('dashboards');
  await page.getByRole('link', { name: 'Looked at' }).click();
  await shown(page.getByRole('rowheader', { name: 'pro' }));
  await page.getByRole('button', { name: 'Edit' }).click();
  await shown(page.getByRole('row', { name: /^The hall / }));
  await look('dashboard-edit');
  expect(faults).toEqual([]);
});
