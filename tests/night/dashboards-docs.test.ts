import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readExpectedCommits } from '../kit/commits.ts';
import { type DocPipeline, docExamples, takeDocTenant, withoutVariation } from '../kit/doc-examples.ts';

const text = await readFile(new URL('../../docs/guide/dashboards.md', import.meta.url), 'utf8');
const [importing, ...reads] = docExamples(text);

let docs: DocPipeline;

beforeAll(async () => {
  docs = await takeDocTenant('dashboards');
  const { pipeline, shell, key } = docs;
  const printed = await shell.run(importing?.command ?? '');
  expect(withoutVariation(printed)).toEqual(withoutVariation(importing?.output ?? ''));
  await pipeline.settled((await readExpectedCommits()).events, key);
  await pipeline.drained();
});
afterAll(() => docs?.[Symbol.asyncDispose]());

test('every example of docs/guide/dashboards.md is a command with its output', () => {
  expect(reads).toHaveLength(text.split('```sh\n').length - 2);
  expect(importing?.command).toMatch(/^npm run import /);
});

test.each(reads)('$command', async ({ command, output }) => {
  expect(withoutVariation(await docs.shell.run(command))).toEqual(withoutVariation(output));
});

test('a response tells caches to keep nothing', async () => {
  const { headers } = await docs.pipeline.get('/events/series?interval=month&startDate=2026-05-01&endDate=2026-07-31');
  expect([headers.get('etag'), headers.get('last-modified'), headers.get('cache-control')]).toEqual([
    null,
    null,
    'no-store',
  ]);
});
