import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type DocPipeline, docExamples, takeDocTenant, withoutVariation } from '../kit/doc-examples.ts';

const INGEST = 'http://localhost:4000';
const QUERY = 'http://localhost:4001';

const text = await readFile(new URL('../../docs/guide/queries.md', import.meta.url), 'utf8');
const examples = docExamples(text);
/** These submit events themselves. */
const streams = examples.filter(({ command }) => command.includes(`${QUERY}/events/stream`));
const submissions = examples.filter((one) => one.command.includes(INGEST) && !streams.includes(one));
const queries = examples.filter((one) => one.command.includes(QUERY) && !streams.includes(one));

let docs: DocPipeline;

beforeAll(async () => {
  docs = await takeDocTenant('queries');
  const { pipeline, shell, key } = docs;
  let stored = 0;
  for (const { command, output } of submissions) {
    const expected = JSON.parse(output) as { events: unknown[] };
    expect(JSON.parse(await shell.run(command))).toEqual(expected);
    stored += expected.events.length;
  }
  await pipeline.settled(stored, key);
  await pipeline.drained();
});
afterAll(() => docs?.[Symbol.asyncDispose]());

test('every example of docs/guide/queries.md is a command with its response', () => {
  expect(examples).toHaveLength(text.split('```sh\n').length - 1);
  expect([...submissions, ...queries, ...streams]).toHaveLength(examples.length);
  expect(submissions.length).toBeGreaterThan(0);
  expect(streams.length).toBeGreaterThan(0);
});

// The streams come last: what they submit is not in the responses of the others.
test.each([...queries, ...streams])('$command', async ({ command, output }) => {
  expect(withoutVariation(await docs.shell.run(command))).toEqual(withoutVariation(output));
});
