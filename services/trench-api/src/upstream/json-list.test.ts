import { setImmediate as nextTurn } from 'node:timers/promises';
import { jsonText } from '@sluice/submissions/reading/json-members';
import { expect, test } from 'vitest';
import { readJsonList } from './json-list.ts';

test('items are converted in order, with their digits, and the other members are values', async () => {
  const body = Buffer.from(
    '{"a":{"b":[1]},"data":[{"n":12345678901234567890,"s":"\\u00e4"},{},{"n":1,"n":2}],"total":3}',
  );
  const { items, others } = await readJsonList(body, 'data', jsonText);
  expect(items.toString()).toBe('[{"n":12345678901234567890,"s":"\\u00e4"},{},{"n":2}]');
  expect(others).toEqual({ a: { b: [1] }, total: 3 });
});

test.each(['', '[]', '{"data":{}}', '{"data":[1]}', '{"data":[{}]', '{"data":[{"a":1]}}'])(
  '%j is no list of objects',
  async (text) => {
    await expect(readJsonList(Buffer.from(text), 'data', jsonText)).rejects.toThrow();
  },
);

test('other requests have their turns before a large list has ended', async () => {
  const row = `{"name":"${'x'.repeat(100)}","values":[${'1,'.repeat(20)}1]}`;
  const body = Buffer.from(`{"data":[${`${row},`.repeat(10_000)}${row}]}`);
  const order: string[] = [];
  const other = nextTurn().then(() => order.push('another request'));
  await readJsonList(body, 'data', jsonText);
  order.push('the list');
  await other;
  expect(order).toEqual(['another request', 'the list']);
});
