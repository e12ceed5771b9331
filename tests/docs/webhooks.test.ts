import { readFile } from 'node:fs/promises';
import { Receiver, WEBHOOKS_ENV } from '@sluice/query-api/testing/webhooks';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { expect, test } from 'vitest';
import { docExamples, startDocPipeline } from '../kit/doc-examples.ts';
import { ownClickHouse } from '../kit/engines.ts';

// Does what docs/guide/webhooks.md says. In place of the receiver on port 5000 there is one of the test.

const text = await readFile(new URL('../../docs/guide/webhooks.md', import.meta.url), 'utf8');
const examples = docExamples(text);

/** JSON without ids, secrets, times and durations. */
function withoutVariation(output: string): unknown {
  return JSON.parse(output, (name, value: unknown) => {
    if (['id', 'secret', 'durationMs'].includes(name)) return typeof value;
    return /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(String(value)) ? 'a time' : value;
  });
}

test('every example of docs/guide/webhooks.md is a command with its response', async () => {
  expect(examples).toHaveLength(text.split('```sh\n').length - 1);
  expect(examples.length).toBeGreaterThan(2);
  await using receiver = await Receiver.start();
  // Here the account has its rights for the tables of webhooks alone.
  await using clickhouse = await ownClickHouse({ accounts: { ...TEST_ACCOUNTS, databases: 'sluice' } });
  const own = { clickhouseUrl: clickhouse.url, database: 'sluice' };
  await using docs = await startDocPipeline('webhooks', { ...own, env: WEBHOOKS_ENV });
  const here = (given: string) => given.replaceAll('http://127.0.0.1:5000', `http://127.0.0.1:${receiver.port}`);
  for (const { command, output } of examples) {
    expect(withoutVariation(await docs.shell.run(here(command)))).toEqual(withoutVariation(here(output)));
  }
  expect(receiver.received.map(({ body }) => JSON.parse(body).type)).toEqual(['test']);
});
