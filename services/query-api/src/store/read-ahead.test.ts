import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { readAhead } from './read-ahead.ts';

test('while the consumer takes nothing, chunks are read; it gets all of them in order, and the failure last', async () => {
  let given = 0;
  let ended = false;
  async function* source(): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (; given < 10; given += 1) yield Buffer.from([given]);
      throw new Error('broken off');
    } finally {
      ended = true;
    }
  }
  const chunks = readAhead(source(), 1);
  expect((await chunks.next()).value).toEqual(Buffer.from([0]));
  await eventually(() => given).toBe(10);
  for (let index = 1; index < 10; index += 1) expect((await chunks.next()).value).toEqual(Buffer.from([index]));
  await expect(chunks.next()).rejects.toThrow('broken off');
  expect(ended).toBe(true);
});

test('no more is read ahead than may be held', async () => {
  let given = 0;
  async function* endless(): AsyncGenerator<Buffer, void, undefined> {
    for (;;) {
      given += 1;
      yield Buffer.alloc(1);
    }
  }
  const chunks = readAhead(endless(), 1);
  await chunks.next();
  await eventually(() => given).toBe(129);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(given).toBe(129);
  await chunks.return();
});
