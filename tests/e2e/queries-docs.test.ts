import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { DocShell, docExamples, withoutVariation } from '../support/doc-examples.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';

const INGEST = 'http://localhost:4000';
const QUERY = 'http://localhost:4001';

const text = await readFile(new URL('../../docs/queries.md', import.meta.url), 'utf8');
const examples = docExamples(text);
/** These submit events themselves. */
const streams = examples.filter(({ command }) => command.includes(`${QUERY}/events/stream`));
const submissions = examples.filter((one) => one.command.includes(INGEST) && !streams.includes(one));
const queries = examples.filter((one) => one.command.includes(QUERY) && !streams.includes(one));

let pipeline: Pipeline;
let folder: string;
let shell: DocShell;

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
  shell = await DocShell.create(pipeline, folder, key);
  let stored = 0;
  for (const { command, output } of submissions) {
    const expected = JSON.parse(output) as { events: unknown[] };
    expect(JSON.parse(await shell.run(command))).toEqual(expected);
    stored += expected.events.length;
  }
  await pipeline.settled(stored, key);
  await pipeline.drained();
});
afterAll(async () => {
  await pipeline?.stop();
  await rm(folder, { recursive: true });
});

test('every example of docs/queries.md is a command with its response', () => {
  expect(examples).toHaveLength(text.split('```sh\n').length - 1);
  expect([...submissions, ...queries, ...streams]).toHaveLength(examples.length);
  expect(submissions.length).toBeGreaterThan(0);
  expect(streams.length).toBeGreaterThan(0);
});

// The streams come last: what they submit is not in the responses of the others.
test.each([...queries, ...streams])('$command', async ({ command, output }) => {
  expect(withoutVariation(await shell.run(command))).toEqual(withoutVariation(output));
});
