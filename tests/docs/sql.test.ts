import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type DocPipeline, docExamples, startDocPipeline, withoutVariation } from '../kit/doc-examples.ts';
import { clickHouseWithSql, SQL_DATABASE, SQL_ENV } from '../kit/sql.ts';

// Does what docs/guide/sql.md says, over a ClickHouse with the accounts and views of deploy/clickhouse/sql.

const text = await readFile(new URL('../../docs/guide/sql.md', import.meta.url), 'utf8');
const examples = docExamples(text);
const [submission, ...queries] = examples;

const stack = new AsyncDisposableStack();
let docs: DocPipeline;

beforeAll(async () => {
  const clickhouse = stack.use(await clickHouseWithSql());
  docs = stack.use(
    await startDocPipeline('sql', {
      ...{ clickhouseUrl: clickhouse.url, database: SQL_DATABASE },
      env: SQL_ENV,
    }),
  );
  const { pipeline, shell, key } = docs;
  const expected = JSON.parse(submission?.output ?? '');
  expect(JSON.parse(await shell.run(submission?.command ?? ''))).toEqual(expected);
  await pipeline.settled(expected.events.length, key);
  await pipeline.drained();
});
afterAll(() => stack.disposeAsync());

test('every example of docs/guide/sql.md is a command with its response', () => {
  expect(examples).toHaveLength(text.split('```sh\n').length - 1);
  expect(queries.length).toBeGreaterThan(3);
});

test.each(queries)('$command', async ({ command, output }) => {
  expect(withoutVariation(await docs.shell.run(command))).toEqual(withoutVariation(output));
});
