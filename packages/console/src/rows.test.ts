import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { readRows } from './rows.ts';

/** A response whose body comes in these chunks, and breaks off if the last one is an error. */
function responseOf(chunks: readonly (string | Error)[], onCancel = () => {}): Response {
  const rest = [...chunks];
  return new Response(
    new ReadableStream({
      pull(controller) {
        const chunk = rest.shift();
        if (chunk === undefined) controller.close();
        else if (typeof chunk === 'string') controller.enqueue(new TextEncoder().encode(chunk));
        else controller.error(chunk);
      },
      cancel: onCancel,
    }),
  );
}

test('rows are read whatever the chunks are, with all digits of numbers', async () => {
  const read = await readRows(responseOf(['{"a":1}\n{"a', '":9007199254740993}\n{"a":"ä"}', '\n']));
  expect(JSON.stringify(read)).toBe('{"rows":[{"a":1},{"a":9007199254740993},{"a":"ä"}],"isWhole":true}');
});

test('a result that is too long for a browser is read no further', async () => {
  let isCancelled = false;
  const endless = Array.from({ length: 1_000 }, (_, index) => `{"a":${index}}\n`);
  const read = await readRows(
    responseOf(endless, () => {
      isCancelled = true;
    }),
    3,
  );
  expect(read).toEqual({ rows: [{ a: 0 }, { a: 1 }, { a: 2 }], isWhole: false });
  await eventually(() => isCancelled).toBe(true);
  expect(await readRows(responseOf(['{"a":"long"}\n{"a":"longer"}\n']), 1_000, 5)).toEqual({
    rows: [{ a: 'long' }],
    isWhole: false,
  });
});

test('a result without rows is whole, and one that breaks off is an error', async () => {
  expect(await readRows(new Response(null))).toEqual({ rows: [], isWhole: true });
  await expect(readRows(responseOf(['{"a":1}\n', new TypeError('network error')]))).rejects.toThrow(
    'The response broke off.',
  );
});
