import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { readExpectedCommits } from '../support/commits.ts';
import { DocShell, docExamples, withoutVariation } from '../support/doc-examples.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';

const text = await readFile(new URL('../../docs/dashboards.md', import.meta.url), 'utf8');
const [importing, ...reads] = docExamples(text);

let pipeline: Pipeline;
let folder: string;
let shell: DocShell;

beforeAll(async () => {
  // As `npm start` has it: reading `local` needs no key.
  folder = await mkdtemp(join(tmpdir(), 'sluice-dashboards-'));
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'dashboards',
    env: { QUERY_ANONYMOUS_WORKSPACE: 'local' },
  });
  const key = await pipeline.addKey('local');
  shell = await DocShell.create(pipeline, folder, key);
  const printed = await shell.run(importing?.command ?? '');
  expect(withoutVariation(printed)).toEqual(withoutVariation(importing?.output ?? ''));
  await pipeline.settled((await readExpectedCommits()).events, key);
  await pipeline.drained();
});
afterAll(async () => {
  await pipeline?.stop();
  await rm(folder, { recursive: true });
});

test('every example of docs/dashboards.md is a command with its output', () => {
  expect(reads).toHaveLength(text.split('```sh\n').length - 2);
  expect(importing?.command).toMatch(/^npm run import /);
});

test.each(reads)('$command', async ({ command, output }) => {
  expect(withoutVariation(await shell.run(command))).toEqual(withoutVariation(output));
});

test('a response has nothing that lets a cache keep it', async () => {
  const { headers } = await pipeline.get('/events/series?interval=month&startDate=2026-05-01&endDate=2026-07-31');
  expect([headers.get('etag'), headers.get('last-modified'), headers.get('cache-control')]).toEqual([null, null, null]);
});
