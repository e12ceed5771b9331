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
  expect(JSON.stringify(read)).toBe(
    '{"columns":["a"],"rows":[{"a":1},{"a":9007199254740993},{"a":"ä"}],"isWhole":true}',
  );
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
  expect(read).toEqual({ columns: ['a'], rows: [{ a: 0 }, { a: 1 }, { a: 2 }], isWhole: false });
  await eventually(() => isCancelled).toBe(true);
  expect(await readRows(responseOf(['{"a":"long"}\n{"a":"longer"}\n']), 1_000, 5)).toEqual({
    columns: ['a'],
    rows: [{ a: 'long' }],
    isWhole: false,
  });
});

test('a result without rows is whole, and one that breaks off is an error', async () => {
  expect(await readRows(new Response(null))).toEqual({ columns: [], rows: [], isWhole: true });
  await expect(readRows(responseOf(['{"a":1}\n', new TypeError('network error')]))).rejects.toThrow(
    'The response broke off.',
  );
});

test('columns are in the order of the statement, also when their names are whole numbers', async () => {
  const line = String.raw`{"b":{"x":1},"2":["]","}"],"1":"\"3\":","a\"b":[{"y":2}],"__proto__":null}`;
  expect((await readRows(responseOf([line, '\n']))).columns).toEqual(['b', '2', '1', 'a"b', '__proto__']);
});

test('a line that comes in very many chunks is read once', async () => {
  const chunk = 'x'.repeat(64);
  const chunks = ['{"a":"', ...Array.from({ length: 1_000 }, () => chunk), '"}\n'];
  const stats = { searched: 0 };
  const split = String.prototype.split;
  String.prototype.split = function (this: string, ...args: [never]) {
    stats.searched += this.length;
    return split.apply(this, args);
  } as typeof split;
  try {
    const { rows } = await readRows(responseOf(chunks));
    expect(String(rows[0]?.['a']).length).toBe(64 * 1_000);
  } finally {
    String.prototype.split = split;
  }
  expect(stats.searched).toBeLessThan(2 * 64 * 1_000);
});
