import { expect, test } from 'vitest';
import { resultBytes } from './clickhouse-reader.ts';
import { ClickHouseException, ConnectionFailure } from './read-failures.ts';

const TAG = 'abcdefghijklmnop';
const ROWS = 'first row\nanother row, longer than the text before an exception\nlast row\n';
const EXCEPTION = `\r\n__exception__\r\n${TAG}\r\nCode: 395. DB::Exception: it broke. (X)\n35 ${TAG}\r\n__exception__\r\n`;

/** Yields a text in pieces of a size, and then fails if there is an error. */
async function* inPieces(text: string, size: number, error?: Error): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size));
  if (error) throw error;
}

async function read(chunks: AsyncIterable<Buffer>, tag = TAG): Promise<{ text: string; error: unknown }> {
  let text = '';
  try {
    for await (const bytes of resultBytes(chunks, tag)) text += bytes;
    return { text, error: undefined };
  } catch (error) {
    return { text, error };
  }
}

const SIZES = [...Array(ROWS.length + EXCEPTION.length).keys()].map((index) => index + 1);

test('bytes are the same however they arrive', async () => {
  for (const size of SIZES) expect(await read(inPieces(ROWS, size))).toEqual({ text: ROWS, error: undefined });
});

test('an exception is thrown, and no byte of it returned, however it arrives', async () => {
  for (const size of SIZES) {
    const { text, error } = await read(inPieces(ROWS + EXCEPTION, size));
    expect(ROWS.startsWith(text), `${size}: ${text}`).toBe(true);
    expect(error).toBeInstanceOf(ClickHouseException);
    expect(error).toMatchObject({ code: 395, message: expect.stringContaining('it broke') });
  }
});

test('an exception counts also when the connection breaks behind it, or its tag is not known', async () => {
  const broken = new ConnectionFailure('reset');
  expect((await read(inPieces(ROWS + EXCEPTION, 9, broken))).error).toMatchObject({ code: 395 });
  expect((await read(inPieces(ROWS + EXCEPTION, 9), '')).error).toMatchObject({ code: 395 });
  expect((await read(inPieces(ROWS, 9, broken))).error).toBe(broken);
});

test('the tag of another response, and what looks like an exception, are data', async () => {
  const text = `${ROWS}\r\n__exception__\r\nponmlkjihgfedcba\r\nCode: 1. DB::Exception: no\n${ROWS}`;
  for (const size of [1, 7, 40, 1_000]) expect(await read(inPieces(text, size))).toEqual({ text, error: undefined });
});
