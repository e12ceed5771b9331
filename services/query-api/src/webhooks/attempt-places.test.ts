import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AttemptPlaces } from './attempt-places.ts';

const never = new AbortController().signal;

test('deliveries of a workspace beyond its places wait in their order, and those of another do not', async () => {
  const places = new AttemptPlaces(2);
  const begun: number[] = [];
  const begin = async (number: number, signal = never, workspace = 'a') => {
    const free = await places.forDelivery(workspace, signal);
    if (free) begun.push(number);
    return free;
  };
  const [first, second] = await Promise.all([begin(1), begin(2)]);
  const leaving = new AbortController();
  const waiting = [begin(3), begin(4, leaving.signal), begin(5)];
  await begin(6, never, 'b');
  leaving.abort();
  expect(await waiting[1]).toBeUndefined();
  expect(await begin(7, leaving.signal)).toBeUndefined();
  expect(begun).toEqual([1, 2, 6]);
  first?.();
  await waiting[0];
  second?.();
  await waiting[2];
  expect(begun).toEqual([1, 2, 6, 3, 5]);
  const later = [begin(8), begin(9)];
  await turn();
  // A place that was handed on is taken.
  expect(begun).toHaveLength(5);
  for (const one of [waiting[0], waiting[2], ...later]) (await one)?.();
  await Promise.all([begin(10), begin(11)]);
  expect(begun.slice(5)).toEqual([8, 9, 10, 11]);
});
