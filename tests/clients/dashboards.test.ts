import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openSignedInConsole, SCHEMES } from '../kit/clients/console-page.ts';
import { shown, takePicture, violationsOf } from '../kit/clients/pages.ts';
import { sharedBrowser } from '../kit/clients/shared-browser.ts';
import { writeCommitsOf } from '../kit/commits.ts';
import { DocShell } from '../kit/doc-examples.ts';
import { runImporter } from '../kit/importer.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

// The page that docs/guide/dashboards.md builds from responses, as a browser shows it.

const text = await readFile(new URL('../../docs/guide/dashboards.md', import.meta.url), 'utf8');
const [, building = ''] = /^```sh\n(chart\(\) \{\n.*?)^```$/ms.exec(text) ?? [];

/** More than the page has in a legend, so that some are the others. tests/night/dashboards-docs.test.ts imports all. */
const ORGANIZATIONS = [
  ...['unkeyed/unkey', 'Openpanel-dev/openpanel', 'hyperdxio/hyperdx'],
  ...['ClickHouse/clickhouse-js', 'pinojs/pino', 'honojs/hono'],
];

let pipeline: Tenant;
let browser: Browser;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-charts-'));
  [pipeline, browser] = await Promise.all([takeTenant('charts'), sharedBrowser()]);
});
afterAll(() => rm(folder, { recursive: true }));

interface Opened {
  readonly page: Page;
  /** What went wrong in the page, and what it asked for. */
  readonly faults: readonly string[];
}

/** Builds the page from the workspace of a key, and returns its file. */
async function buildCharts(name: string, key: string): Promise<string> {
  const path = join(folder, name);
  await mkdir(path);
  const shell = await DocShell.create(pipeline, path, key);
  await shell.run(building);
  const file = join(path, '.sluice', 'charts.html');
  expect(await readFile(file, 'utf8')).not.toContain(key);
  return file;
}

async function openCharts(file: string, colorScheme: 'light' | 'dark' = 'light'): Promise<Opened> {
  const context = await browser.newContext({ colorScheme });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const faults: string[] = [];
  const url = pathToFileURL(file).href;
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => faults.push(message.text()));
  page.on('request', (request) => {
    if (request.url() !== url) faults.push(`asked ${request.url()}`);
  });
  await page.goto(url);
  return { page, faults };
}

interface Series {
  readonly buckets: readonly string[];
  readonly series: readonly { group: unknown[]; total: number; values: (number | null)[] }[];
  readonly other: { total: number; values: (number | null)[] };
  readonly total: number;
  readonly previous: Series;
}

const RANGE = 'startDate=2025-08-01&endDate=2026-07-31';

test('the page shows the numbers of the responses, in light and dark', async () => {
  const { file: commits } = await writeCommitsOf(ORGANIZATIONS, folder);
  const { code, output } = await runImporter(['--url', pipeline.services['ingest-api'].url, commits], pipeline.key);
  expect(code, output).toBe(0);
  await pipeline.drained();
  const file = await buildCharts('numbers', pipeline.key);
  for (const scheme of ['light', 'dark'] as const) {
    const { page, faults } = await openCharts(file, scheme);
    const figures = page.getByRole('figure');
    expect(await figures.locator('figcaption').allTextContents()).toEqual(
      [...building.matchAll(/^ {2}chart \w+ '(.*?)'/gm)].map(([, title]) => title),
    );
    const read = async <Body>(query: string): Promise<Body> => (await pipeline.get<Body>(query)).body;
    const byGroup = await read<Series>(`/events/series?interval=month&${RANGE}&groupBy=groupId&groups=4`);
    expect(byGroup.other.total).toBeGreaterThan(0);
    const shown = [...byGroup.series, { group: ['all others'], ...byGroup.other }];
    expect(await figures.nth(0).getByRole('listitem').allTextContents()).toEqual(
      shown.map(({ group, total }) => `${group.join()}: ${total}`),
    );
    expect((await figures.nth(0).locator('circle title').allTextContents()).map((one) => one.split(': ')[1])).toEqual(
      shown.flatMap(({ values }) => values.map(String)),
    );
    expect(await figures.nth(0).locator('circle title').first().textContent()).toMatch(/^\S+, 1 Aug 2025: \d+$/);
    const users = await read<Series>(`/events/series?interval=month&${RANGE}&measure=users&compare=previous`);
    expect(await figures.nth(1).getByRole('listitem').allTextContents()).toEqual([
      `users: ${users.total}`,
      `users, the time before: ${users.previous.total}`,
    ]);
    expect(await figures.nth(1).locator('path[stroke-dasharray="6 6"]').count()).toBe(1);
    const days = await read<Series>(`/events/series?interval=none&${RANGE}&groupBy=properties.weekday`);
    expect(await figures.nth(2).locator('text').allTextContents()).toEqual(
      days.series.flatMap(({ group, total }) => [String(group[0]), String(total)]),
    );
    const { steps } = await read<{ steps: { event: string; count: number }[] }>(
      `/events/funnel?${RANGE}&steps=commit,merge`,
    );
    expect((await figures.nth(3).locator('text').allTextContents()).map((one) => one.split(' (')[0])).toEqual(
      steps.flatMap(({ event, count }) => [event, String(count)]),
    );
    // A triangle: the youngest cohort has no month after its own.
    const rows = figures.nth(4).getByRole('row');
    const cells = await Promise.all((await rows.all()).map((row) => row.locator('td').count()));
    expect(cells).toEqual(Array.from({ length: 12 }, (_, index) => 12 - index));
    expect(await violationsOf(page)).toEqual([]);
    await takePicture(page, `charts-${scheme}`);
    expect(faults).toEqual([]);
  }
});

test('a name that is markup, or ends a script, is shown as text', async () => {
  const key = await pipeline.addKey('hostile');
  const names = [
    '</script><script>document.title = "script"</script>',
    '<img src=x onerror="document.title = 1">',
    '\\u003c"\\n',
  ];
  for (const name of names) {
    const events = [{ event: 'commit', timestamp: '2026-03-01T12:00:00Z', properties: { weekday: name } }];
    await pipeline.submit({ foreignUserGroupId: name, foreignUserId: name, events }, { key });
  }
  await pipeline.settled(names.length, key);
  const { page, faults } = await openCharts(await buildCharts('hostile', key));
  const legend = await page.getByRole('figure').nth(0).getByRole('listitem').allTextContents();
  expect(legend.toSorted()).toEqual(names.map((name) => `${name}: 1`).toSorted());
  expect(await page.locator('img').count()).toBe(0);
  expect(await page.title()).toBe('Charts');
  expect(faults).toEqual([]);
});

test('a figure says when its numbers are not all there, or not exact', async () => {
  const { page } = await openCharts(await buildCharts('doubts', await pipeline.addKey('empty')));
  await page.evaluate(
    `lines('none', { complete: false, exact: true, timeZone: 'UTC', buckets: [], series: [], other: null })`,
  );
  await page.evaluate(`funnel('some', { complete: false, exact: false, steps: [{ event: 'a', count: null }] })`);
  await page.evaluate(`lines('gaps', { complete: true, exact: true, timeZone: 'UTC', measure: 'avg', other: null,
    buckets: ['2026-03-01T00:00:00Z', '2026-03-02T00:00:00Z', '2026-03-03T00:00:00Z'],
    series: [{ group: [], total: 2, values: [1, null, 3] }] })`);
  const figure = (title: string) => page.getByRole('figure').filter({ hasText: title });
  expect(await figure('none').textContent()).toContain('Incomplete');
  expect(await figure('some').textContent()).toMatch(/Incomplete.*estimates.*a\?/);
  expect(await figure('gaps').locator('circle').count()).toBe(2);
  expect((await figure('gaps').locator('path').getAttribute('d'))?.match(/[ML]/g)).toEqual(['M', 'M']);
});

test('the console shows the same commits, as in the picture of the README', async () => {
  const query = new URLSearchParams({
    ...{ startDate: '2025-08-01', endDate: '2026-07-31', interval: 'month' },
    ...{ groupBy: 'groupId', form: 'stacked' },
  });
  const { page, faults } = await openSignedInConsole({ pipeline, browser }, `#/explore?${query}`, { zone: 'UTC' });
  await page.setViewportSize({ width: 1280, height: 800 });
  const { total } = (await pipeline.get<Series>(`/events/series?interval=none&${RANGE}`)).body;
  await shown(page.getByText(`Total ${total.toLocaleString('en-GB')}.`));
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    const box = await until('the chart to be drawn', () => page.locator('.chart .u-over').boundingBox());
    await page.mouse.move(box.x + 0.6 * box.width, box.y + 20);
    await page.mouse.move(box.x + 0.62 * box.width, box.y + 20);
    await eventually(() => page.locator('.tip strong').textContent()).toBe('March 2026');
    await takePicture(page, `console-${colorScheme}`);
  }
  expect(faults).toEqual([]);
});
