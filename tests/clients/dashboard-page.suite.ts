import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { chromium } from 'playwright-core';
import { expect, test } from 'vitest';
import { docExamples } from '../support/doc-examples.ts';
import { findChromium } from './chromium.ts';

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** The responses that docs/dashboards.md shows, by the name of their chart. tests/e2e/commits.test.ts checks them. */
async function shownResponses(): Promise<readonly [name: string, json: string][]> {
  const examples = docExamples(await readFile(file('docs/dashboards.md'), 'utf8'));
  return examples.flatMap(({ command, output }) => {
    const name = /tee dashboard\/(\w+)\.json/.exec(command)?.[1];
    return name === undefined ? [] : [[name, output]];
  });
}

test.each(['light', 'dark'] as const)('the page of docs/dashboards.md draws its responses: %s', async (colorScheme) => {
  await using folder = await makeTempDir();
  const responses = await shownResponses();
  // A name that would be markup if the page let it.
  const hostile = responses.map(([name, json]) => [name, json.replaceAll('graphile/crystal', '<img src=x>')] as const);
  await writeFile(join(folder.path, 'data.js'), hostile.map(([name, json]) => `charts.${name} = ${json};\n`).join(''));
  const index = join(folder.path, 'index.html');
  await copyFile(file('examples/dashboard.html'), index);

  await using browser = await chromium.launch({ executablePath: await findChromium(), args: ['--no-sandbox'] });
  const page = await (await browser.newContext({ colorScheme })).newPage();
  const faults: string[] = [];
  page.on('pageerror', ({ message }) => faults.push(message));
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  await page.goto(pathToFileURL(index).href);
  expect(await page.getByRole('heading', { level: 2 }).allTextContents()).toEqual([
    'Commits by month',
    'People who committed',
    'Growth of organizations',
    'People who came back',
  ]);
  const months = page.getByRole('img', { name: 'Commits by month' });
  expect(await months.locator('path > title').allTextContents()).toEqual([
    'langfuse/langfuse: 222, 256, 241, 251, 488, 676',
    'unkeyed/unkey: 146, 198, 223, 153, 182, 234',
    '<img src=x>: 399, 246, 58, 47, 79, 125',
    'all others: 533, 709, 688, 719, 581, 582',
  ]);
  const growth = page.getByRole('table').first().getByRole('row');
  expect(await growth.nth(1).getByRole('cell').allTextContents()).toEqual(['2226', '0', '2226']);
  expect(await growth.last().allTextContents()).toEqual(['<img src=x>24793333-854']);
  expect(await page.locator('img').count()).toBe(0);
  expect(faults).toEqual([]);
});
