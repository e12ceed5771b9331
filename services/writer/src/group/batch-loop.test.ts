import type { SourceMessage } from '@sluice/storage/protocol/row-batch';
import { expect, test } from 'vitest';
import { Gatherer } from './batch-loop.ts';

function message(bytes: number): SourceMessage {
  const value = Buffer.alloc(bytes);
  return {
    topic: 't',
    partition: 0,
    message: { key: null, value, timestamp: '0', attributes: 0, offset: '0', headers: {} },
  };
}

test('messages of several partitions share a batch, batches are stored one after the other, and none is too large', async () => {
  const batches: number[] = [];
  let storing = 0;
  const gatherer = new Gatherer(async (messages) => {
    storing += 1;
    expect(storing).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 10));
    batches.push(messages.reduce((sum, { message: { value } }) => sum + (value?.length ?? 0), 0));
    storing -= 1;
  }, 100);
  await Promise.all([40, 50, 60, 30, 200, 10].map((bytes) => gatherer.add([message(bytes)], 'owner')));
  expect(batches).toEqual([90, 90, 200, 10]);
});

test('a batch that fails rejects for those who added to it, and the next batch is stored all the same', async () => {
  let attempt = 0;
  const gatherer = new Gatherer(async () => {
    attempt += 1;
    if (attempt === 1) throw new Error('given up');
  }, 100);
  await expect(gatherer.add([message(1)], 'owner')).rejects.toThrow('given up');
  await gatherer.add([message(1)], 'owner');
  expect(attempt).toBe(2);
});

test('a batch has one owner', async () => {
  const batches: [string, number][] = [];
  const gatherer = new Gatherer<string>(async (messages, owner) => void batches.push([owner, messages.length]), 100);
  await Promise.all(['a', 'a', 'b', 'b', 'a'].map((owner) => gatherer.add([message(1)], owner)));
  expect(batches).toEqual([
    ['a', 2],
    ['b', 2],
    ['a', 1],
  ]);
});
