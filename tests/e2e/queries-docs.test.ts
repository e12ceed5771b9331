import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';

/** A command of docs/queries.md, and the response that the document shows. */
interface Example {
  readonly command: string;
  readonly response: string;
}

const INGEST = 'http://localhost:4000';
const QUERY = 'http://localhost:4001';

const text = await readFile(new URL('../../docs/queries.md', import.meta.url), 'utf8');
const examples = [...text.matchAll(/^```sh\n(.*?)\n```\n\n```json\n(.*?)\n```$/gms)].map(
  ([, command = '', response = '']): Example => ({ command, response }),
);
const submissions = examples.filter(({ command }) => command.includes(INGEST));
const queries = examples.filter(({ command }) => command.includes(QUERY));

let pipeline: Pipeline;
let folder: string;

beforeAll(async () => {
  // As `npm start` has it: cursors belong to a workspace, and reading `local` needs no key.
  folder = await mkdtemp(join(tmpdir(), 'sluice-queries-'));
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'queries',
    env: { QUERY_ANONYMOUS_WORKSPACE: 'local' },
  });
  const key = await pipeline.addKey('local');
  await mkdir(join(folder, '.sluice'));
  await writeFile(join(folder, '.sluice', 'dev-key'), key);
  let stored = 0;
  for (const { command, response } of submissions) {
    const expected = JSON.parse(response) as { events: unknown[] };
    expect(await run(command)).toEqual(expected);
    stored += expected.events.length;
  }
  await pipeline.settled(stored, key);
  await pipeline.drained();
});
afterAll(async () => {
  await pipeline?.stop();
  await rm(folder, { recursive: true });
});

/** What a command of the document prints. */
async function run(command: string): Promise<unknown> {
  const { services } = pipeline;
  const here = command.replaceAll(INGEST, services['ingest-api'].url).replaceAll(QUERY, services['query-api'].url);
  const { stdout } = await promisify(execFile)('sh', ['-c', here], { cwd: folder });
  return JSON.parse(stdout);
}

/** A response without its times of receipt, which differ in every run. */
function withoutReceipt(response: unknown): unknown {
  return JSON.parse(JSON.stringify(response), (name, value: unknown) =>
    name === 'receivedAt' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(String(value)) ? 'a time' : value,
  );
}

test('every example of docs/queries.md is a command with its response', () => {
  expect(examples).toHaveLength(text.split('```sh\n').length - 1);
  expect([...submissions, ...queries]).toHaveLength(examples.length);
  expect(submissions.length).toBeGreaterThan(0);
});

test.each(queries)('$command', async ({ command, response }) => {
  expect(withoutReceipt(await run(command))).toEqual(withoutReceipt(JSON.parse(response)));
});
