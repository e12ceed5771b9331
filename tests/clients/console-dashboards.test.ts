import { readFile } from 'node:fs/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { expectAccessible, looks, openMore, openSignedInConsole, takePictures } from '../kit/clients/console-page.ts';
import { shown, tabTo, takePicture } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;
let browser: Browser;

beforeAll(async () => {
  [pipeline, browser] = await Promise.all([takeTenant('consoledashboards'), sharedBrowser()]);
  for (let user = 0; user < 30; user += 1) {
    const start = Date.UTC(2026, 1, 2 + (user % 20), 10);
    const at = (hours: number) => new Date(start + hours * 3_600_000).toISOString();
    const properties = { plan: ['pro', 'free', 'مجاني'][user % 3] };
    const events = [
      { event: 'signed_up', timestamp: at(0), properties },
      ...(user % 2 === 0 ? [{ event: 'paid', timestamp: at(1), properties }] : []),
      ...(user % 5 === 0 ? [{ event: 'signed_up', timestamp: at(7 * 24), properties }] : []),
    ];
    const submission = { foreignUserGroupId: `org-${user % 4}`, foreignUserId: `user-${user}`, events };
    expect((await pipeline.submit(submission)).status).toBe(202);
  }
  await pipeline.drained();
});

const DAYS = { startDate: '2026-02-01', endDate: '2026-03-01', timeZone: 'Europe/Berlin' };
const BEFORE = { startDate: '2019-02-01', endDate: '2019-03-01', timeZone: 'Europe/Berlin' };

/** A view of each report, with the tables that draw its numbers in Explore. */
const VIEWS = [
  ['By plan', 'series', { ...DAYS, groupBy: 'properties.plan', compare: 'previous' }, ['Totals']],
  ['Sign-ups', 'series', { ...DAYS, event: 'signed_up', form: 'bar' }, []],
  ['Payments', 'series', { ...DAYS, event: 'paid', form: 'number' }, []],
  ['Names', 'series', { ...DAYS, groupBy: 'event', interval: 'none' }, ['Totals']],
  [
    'Organizations that pay',
    'funnel',
    { ...DAYS, steps: 'signed_up,paid', by: 'organization', groupBy: 'properties.plan' },
    ['Steps', 'Groups'],
  ],
  ['Who comes back', 'retention', { ...DAYS, event: 'signed_up', interval: 'week' }, ['Retention']],
  ['Plans', 'values', { ...DAYS, property: 'properties.plan' }, ['Values']],
] as const;

type ViewOf = readonly [name: string, report: string, parameters: object, ...unknown[]];

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

/** Creates a dashboard with views, and a link to it. The first view is wide. */
async function createDashboard(name: string, views: readonly ViewOf[]) {
  const tiles: { view: string; width: number }[] = [];
  for (const [title, report, parameters] of views) {
    const { id } = await create('views', { name: title, report, parameters });
    tiles.push({ view: id, width: tiles.length === 0 ? 2 : 1 });
  }
  const { id } = await create('dashboards', { name, tiles });
  const { key } = await create(`dashboards/${id}/links`, { name: 'Screen' });
  return { path: `#/dashboards/${id}`, key, views: tiles.map(({ view }) => view) };
}

const open = (hash: string) => openSignedInConsole({ pipeline, browser }, hash);

/** Opens a link in a browser of its own, as a screen on a wall does. */
async function openWall({ path, key, range = '' }: { path: string; key: string; range?: string }) {
  const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin' });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const [faults, refused]: [string[], string[]] = [[], []];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('response', (response) => {
    if (response.status() >= 400) refused.push(response.url());
  });
  await page.goto(`${pipeline.services['query-api'].url}/console/${path}?key=${key}${range}`);
  return { page, faults, refused };
}

/** The cells of a table in a place that is named, each with where it leads. */
async function drawnIn(page: Page, name: string): Promise<(readonly [text: string, hrefs: readonly string[]])[][]> {
  const rows = page.getByRole('region', { name, exact: true }).locator('tbody tr');
  return await rows.evaluateAll((all) =>
    all.map((row) =>
      [...row.querySelectorAll('th, td')].map((cell): [string, string[]] => [
        (cell.textContent ?? '').trim(),
        [...cell.querySelectorAll('a')].map((link) => link.getAttribute('href') ?? ''),
      ]),
    ),
  );
}

const textsOf = (rows: Awaited<ReturnType<typeof drawnIn>>) => rows.map((row) => row.map(([text]) => text));

/** The color of each swatch of a table, and that of its line. */
const COLORS_OF_SWATCHES = `[...document.querySelectorAll('[aria-label="Totals of By plan"] tbody .swatch')].map(
  (swatch, index) => {
    const line = document.createElement('i');
    line.style.color = 'var(--series-' + index + ')';
    swatch.append(line);
    return [getComputedStyle(swatch).borderTopColor, getComputedStyle(line).color];
  },
)`;

test('tiles draw what Explore draws, and lead to the same; the wall draws it without links', async () => {
  const dashboard = await createDashboard('Equal', VIEWS);
  const explore = await open('#/explore');
  const console = await open(dashboard.path);
  const wall = await openWall(dashboard);
  for (const [title, , , tables] of VIEWS) {
    const heading = console.page.getByRole('link', { name: title, exact: true });
    await shown(heading);
    const href = await heading.getAttribute('href');
    // So that no table of the view before is left.
    await explore.page.goto('about:blank');
    await explore.page.goto(`${pipeline.services['query-api'].url}/console/${href}`);
    for (const table of tables) {
      await shown(explore.page.getByRole('region', { name: table, exact: true }).getByRole('link').first());
      const expected = await drawnIn(explore.page, table);
      await eventually(() => drawnIn(console.page, `${table} of ${title}`)).toEqual(expected);
      await eventually(async () => textsOf(await drawnIn(wall.page, `${table} of ${title}`))).toEqual(
        textsOf(expected),
      );
    }
  }
  // A swatch has the color of its line.
  const colors = await console.page.evaluate<[swatch: string, line: string][]>(COLORS_OF_SWATCHES);
  expect(colors.map(([swatch]) => swatch)).toEqual(colors.map(([, line]) => line));
  expect(new Set(colors.flat()).size).toBe(3);
  // Shares are bars, and cells of retention have shades.
  for (const { page } of [console, wall]) {
    expect(await page.getByRole('region', { name: 'Steps of Organizations that pay' }).locator('.share').count()).toBe(
      2,
    );
    expect(await page.getByRole('region', { name: 'Values of Plans' }).locator('.share').count()).toBe(3);
    expect(await page.locator('.cohorts .shade-10').count()).toBeGreaterThan(0);
    await shown(page.getByRole('img', { name: 'Chart of Sign-ups' }));
    await shown(page.locator('.figure', { hasText: /^15$/ }));
  }
  await shown(console.page.getByRole('columnheader', { name: 'Organizations' }));
  expect(await wall.page.getByRole('link').count()).toBe(0);
  expect(wall.refused).toEqual([]);
  expect([...explore.faults, ...console.faults, ...wall.faults]).toEqual([]);
});

test('a tile without numbers says so, on the wall too, and on the dashboard where there are some', async () => {
  const views = VIEWS.map(([name, report, parameters]): ViewOf => [name, report, { ...parameters, ...BEFORE }]);
  const dashboard = await createDashboard('Nothing', views);
  const { page, faults } = await open(dashboard.path);
  await eventually(() => page.getByRole('link', { name: 'show that month' }).count()).toBe(VIEWS.length);
  const wall = await openWall(dashboard);
  await eventually(() => wall.page.getByText('Nothing matches in this range.').count()).toBe(VIEWS.length);
  expect(await wall.page.getByRole('link').count()).toBe(0);
  expect(wall.refused).toEqual([]);
  expect([...faults, ...wall.faults]).toEqual([]);
  await takePicture(page, 'dashboard-empty');
  await takePicture(wall.page, 'wall-empty');
});

test('a tile that cannot be read says so, and the others are there', async () => {
  const dashboard = await createDashboard('Partly', [VIEWS[1], VIEWS[4], VIEWS[6]]);
  const { page, faults } = await open('#/dashboards');
  const failing = `**/tiles/${dashboard.views[1]}`;
  await page.route(failing, (route) => route.abort());
  await page.getByRole('link', { name: 'Partly' }).click();
  await shown(page.getByText('query-api does not respond.'));
  await shown(page.getByRole('region', { name: 'Values of Plans' }));
  await shown(page.getByRole('img', { name: 'Chart of Sign-ups' }));
  await takePicture(page, 'dashboard-error');
  expect(faults).toEqual([]);
});

test('a tile that was just added shows its numbers as soon as it is stored', async () => {
  const { path } = await createDashboard('Growing', []);
  const { id } = await create('views', { name: 'Late', report: 'series', parameters: { ...DAYS, event: 'paid' } });
  const { page, faults } = await open(path);
  const stored = Promise.withResolvers<void>();
  const tiles: number[] = [];
  page.on('response', (response) => {
    if (response.url().endsWith(`/tiles/${id}`)) tiles.push(response.status());
  });
  await page.route(/\/dashboards\/[^/]+$/, async (route) => {
    if (route.request().method() === 'PATCH') await stored.promise;
    await route.continue();
  });
  await page.getByRole('combobox', { name: 'View' }).selectOption(id);
  await page.getByRole('button', { name: 'Add it' }).click();
  const tile = page.getByRole('region', { name: 'Late' });
  await shown(tile.getByText('Saving …'));
  stored.resolve();
  await shown(tile.getByRole('img', { name: 'Chart of Late' }).locator('canvas'));
  expect(tiles).toEqual([200]);
  expect(faults).toEqual([]);
});

test('one range for all tiles is in the address, and on the wall; a tile says its time in words', async () => {
  const dashboard = await createDashboard('Ranged', VIEWS.slice(0, 4));
  const { page, faults } = await open(dashboard.path);
  const tile = page.getByRole('region', { name: 'Sign-ups', exact: true });
  await shown(tile.getByText(/1 Feb.* 1 Mar 2026/));
  const asked: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/tiles/')) asked.push(new URL(request.url()).search);
  });
  await tabTo(page, page.getByLabel('Range of the dashboard'));
  await page.keyboard.type('Last 12');
  await eventually(() => page.getByText('Last 12 months').filter({ visible: true }).count()).toBe(4);
  // The first letters choose others.
  expect(asked.slice(-4)).toEqual(Array.from({ length: 4 }, () => '?range=12m'));
  expect(page.url()).toContain('range=12m');
  const href = await tile.getByRole('link', { name: 'Sign-ups' }).getAttribute('href');
  expect(new URLSearchParams(href?.split('?')[1]).get('range')).toBe('12m');
  expect(href).not.toContain('startDate');
  // Nothing on a tile is moved or pressed but the names of its lines.
  expect(await page.locator('.tile').locator('summary, input, button:not(.legend button)').count()).toBe(0);
  const wall = await openWall({ ...dashboard, range: '&range=12m' });
  await eventually(() => wall.page.getByText('Last 12 months').count()).toBe(4);
  expect(await wall.page.evaluate('location.hash')).toBe(`${dashboard.path}?range=12m`);
  expect([...faults, ...wall.faults]).toEqual([]);
});

/** What of a wall does not fit: the page, or the name of a tile. */
const CUT = `[
  ...(document.documentElement.scrollHeight > innerHeight || document.documentElement.scrollWidth > innerWidth ? ['page'] : []),
  ...[...document.querySelectorAll('.tile-body')]
    .filter((body) => body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1)
    .map((body) => body.parentElement.getAttribute('aria-label')),
]`;

test('a wall with all reports and a note fits a screen and a larger one, without scrolling or cutting', async () => {
  const { key, path, views } = await createDashboard('Hall', VIEWS);
  const tiles = [
    ...views.map((view, index) => ({ view, width: index === 0 ? 2 : 1 })),
    { note: 'Two\nlines', width: 1 },
  ];
  const { url } = pipeline.services['query-api'];
  const headers = { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' };
  const response = await fetch(`${url}/${path.slice(2)}`, {
    method: 'PATCH',
    headers,
    body: JSON.stringify({ tiles }),
  });
  expect(response.status).toBe(200);
  const wall = await openWall({ key, path });
  for (const [width, height] of looks<[number, number]>([[1920, 1080]], [[3840, 2160]])) {
    await wall.page.setViewportSize({ width, height });
    await shown(wall.page.getByRole('img', { name: 'Chart of Sign-ups' }).locator('canvas'));
    await shown(wall.page.getByText('Two'));
    await eventually(() => wall.page.getByText('Loading …').count()).toBe(0);
    // A chart takes the new size a moment later.
    await eventually(() => wall.page.evaluate(CUT)).toEqual([]);
    await takePictures(wall.page, 'wall-fits', `-${width}`);
  }
  expect(wall.faults).toEqual([]);
});

test('dashboards are made of the events that there are, by one click; a note is added by keyboard', async () => {
  const { page, faults } = await open('#/dashboards');
  await page.getByRole('button', { name: 'Activation' }).click();
  await shown(page.getByRole('heading', { level: 1, name: 'Activation' }));
  await shown(page.getByText('Of those who begin with “signed_up”, how many go on to “paid”'));
  await shown(page.getByRole('region', { name: 'From beginning to use', exact: true }));
  await tabTo(page, page.getByRole('button', { name: 'Edit' }));
  await page.keyboard.press('Enter');
  await tabTo(page, page.getByLabel('Note', { exact: true }));
  await page.keyboard.type('<b>Mind</b> the gap');
  await tabTo(page, page.getByRole('button', { name: 'Add the note' }));
  await page.keyboard.press('Enter');
  await shown(page.getByRole('region', { name: '<b>Mind</b> the gap', exact: true }));
  await eventually(() => page.getByText('Saving …').count()).toBe(0);
  await page.reload();
  await shown(page.getByRole('region', { name: '<b>Mind</b> the gap', exact: true }));
  await page.goto(`${pipeline.services['query-api'].url}/console/#/dashboards`);
  await page.getByRole('combobox', { name: 'Organization' }).click();
  await page.getByRole('option', { name: /^org-1/ }).click();
  await page.getByRole('button', { name: 'Health of an organization' }).click();
  await shown(page.getByRole('heading', { level: 1, name: 'org-1: health' }));
  await eventually(() => page.locator('.tile').count()).toBe(5);
  expect(faults).toEqual([]);
});

test('without the views of the workspace the numbers are there, without links', async () => {
  await createDashboard('Unlinked', VIEWS.slice(-2));
  const { page } = await open('#/dashboards');
  await page.route('**/views', (route) => route.abort());
  await page.getByRole('link', { name: 'Unlinked' }).click();
  await shown(page.getByRole('region', { name: 'Values of Plans' }));
  expect(await page.locator('.tile a').count()).toBe(0);
});

test.each(looks(['bar'], ['line', 'stacked']))(
  'a chart of %s is saved as SVG that draws the same and has no script',
  async (form) => {
    const query = new URLSearchParams({ ...DAYS, groupBy: 'properties.plan', compare: 'previous', form });
    if (form === 'stacked') query.delete('compare');
    const { page, faults } = await open(`#/explore?${query}&markers=paid`);
    await shown(page.getByRole('img', { name: /^Chart/ }).locator('canvas'));
    const saved = page.waitForEvent('download');
    await openMore(page);
    await page.getByRole('button', { name: 'Save as SVG' }).click();
    const download = await saved;
    expect(download.suggestedFilename()).toBe('chart.svg');
    const path = await download.path();
    const svg = await readFile(path, 'utf8');
    expect(svg).not.toMatch(/<script|href=|style=/);
    // As XML, whose parser forgives nothing.
    const picture = await page.context().newPage();
    await picture.setViewportSize({ width: 960, height: 480 });
    await picture.route('**/chart.svg', (route) => route.fulfill({ contentType: 'image/svg+xml', body: svg }));
    await picture.goto(`${pipeline.services['query-api'].url}/chart.svg`);
    expect(await picture.locator('parsererror').count()).toBe(0);
    expect(await picture.locator('text').allTextContents()).toEqual(
      expect.arrayContaining(['\u2068مجاني\u2069: 17', '\u2068pro\u2069: 17', '2', '0']),
    );
    await takePicture(picture, `chart-svg-${form}`);
    expect(faults).toEqual([]);
  },
);

test('axe-core finds nothing on a full dashboard and its wall, which fit a phone', async () => {
  const dashboard = await createDashboard('All', VIEWS);
  const { page, faults } = await open(dashboard.path);
  const wall = await openWall(dashboard);
  for (const [name, one] of [
    ['dashboard-full', page],
    ['wall-full', wall.page],
  ] as const) {
    await one.setViewportSize({ width: 1280, height: 900 });
    await shown(one.getByRole('region', { name: 'Values of Plans' }));
    await shown(one.getByRole('region', { name: 'Retention of Who comes back' }));
    await shown(one.getByRole('img', { name: 'Chart of Sign-ups' }).locator('canvas'));
    await expectAccessible(one, name);
    await one.setViewportSize({ width: 390, height: 844 });
    await takePictures(one, name, '-390');
    await one.setViewportSize({ width: 360, height: 800 });
    expect([name, await one.evaluate('document.documentElement.scrollWidth')]).toEqual([name, 360]);
  }
  for (const [width, height] of looks<[number, number]>([], [[1920, 1080]])) {
    await wall.page.setViewportSize({ width, height });
    await expectAccessible(wall.page, 'wall-full', '-1920');
  }
  expect([...faults, ...wall.faults]).toEqual([]);
});
