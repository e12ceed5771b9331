import { readFile } from 'node:fs/promises';
import { Receiver, WEBHOOKS_ENV } from '@sluice/query-api/testing/webhooks';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { docExamples, startDocPipeline } from '../kit/doc-examples.ts';

// Does what docs/guide/alerts.md says. In place of the receiver on port 5000 there is one of the test.

const text = await readFile(new URL('../../docs/guide/alerts.md', import.meta.url), 'utf8');
const examples = docExamples(text);

/** JSON without ids, secrets and times. */
function withoutVariation(output: string): unknown {
  return JSON.parse(output, (name, value: unknown) => {
    if (['id', 'view', 'dashboard', 'secret'].includes(name)) return typeof value;
    return /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(String(value)) ? 'a time' : value;
  });
}

test('every example of docs/guide/alerts.md is a command with its response, and the alert is sent', async () => {
  expect(examples).toHaveLength(text.split('```sh\n').length - 1);
  expect(examples.length).toBeGreaterThan(1);
  await using receiver = await Receiver.start();
  await using docs = await startDocPipeline('alerts', { clickhouseUrl: inject('clickhouseUrl'), env: WEBHOOKS_ENV });
  const here = (given: string) => given.replaceAll('http://127.0.0.1:5000', `http://127.0.0.1:${receiver.port}`);
  for (const { command, output } of examples) {
    expect(withoutVariation(await docs.shell.run(here(command)))).toEqual(withoutVariation(here(output)));
  }
  // A writer records how far it is, and nobody has signed up.
  await until('the message', async () => receiver.received.length > 0);
  expect(receiver.received.map(({ body }) => JSON.parse(body))).toMatchObject([
    { type: 'alert', data: { state: 'firing', value: 0, view: { name: 'Sign-ups' } } },
  ]);
});
