import { expect, test } from 'vitest';
import { readLines } from './source.ts';

async function read(chunks: readonly string[], lineBytesMax = 100): Promise<[number, string | undefined][]> {
  const found: [number, string | undefined][] = [];
  const stream = (async function* () {
    for (const chunk of chunks) yield Buffer.from(chunk, 'latin1');
  })();
  for await (const { number, bytes } of readLines(stream, lineBytesMax))
    found.push([number, bytes?.toString('latin1')]);
  return found;
}

test('lines are the same however the bytes arrive', async () => {
  const text = 'one\n\r\n\ntwo\r\nthree é\n\nend';
  const expected = [
    [1, 'one'],
    [2, ''],
    [3, ''],
    [4, 'two'],
    [5, 'three é'],
    [6, ''],
    [7, 'end'],
  ];
  for (let size = 1; size <= text.length; size += 1) {
    const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
      text.slice(index * size, (index + 1) * size),
    );
    expect(await read(chunks)).toEqual(expected);
  }
});

test('a last line may lack its line feed, and an empty file has no lines', async () => {
  expect(await read(['a\nb'])).toEqual([
    [1, 'a'],
    [2, 'b'],
  ]);
  expect(await read(['a\n'])).toEqual([[1, 'a']]);
  expect(await read([])).toEqual([]);
});

test('a byte order mark is no part of the first line', async () => {
  const mark = Buffer.from('\ufeff').toString('latin1');
  expect(await read([`${mark}{}\n${mark}`])).toEqual([
    [1, '{}'],
    [2, mark],
  ]);
});

test('a line that is too long is passed over, and the next one is read', async () => {
  const long = 'x'.repeat(30);
  expect(await read(['ok\n', long, long, long, long, `${long}\nnext\n`, 'y'.repeat(101)])).toEqual([
    [1, 'ok'],
    [2, undefined],
    [3, 'next'],
    [4, undefined],
  ]);
});
