import { expect, test } from 'vitest';
import { ApiError } from './api.ts';
import { patiently, Slots } from './patience.ts';

const busy = () => new ApiError(503, 'The service is busy; try again.', [], 0);

test('so many tasks run at once, the others in their order, also after one that fails', async () => {
  const slots = new Slots(2);
  const begun: number[] = [];
  const ends = Array.from({ length: 4 }, () => Promise.withResolvers<number>());
  const results = ends.map(({ promise }, index) =>
    slots.run(() => {
      begun.push(index);
      return promise;
    }),
  );
  const outcome = Promise.allSettled(results);
  expect(begun).toEqual([0, 1]);
  ends[1]?.reject(new Error('failed'));
  await expect(results[1]).rejects.toThrow('failed');
  expect(begun).toEqual([0, 1, 2]);
  for (const [index, { resolve }] of ends.entries()) resolve(index);
  expect((await outcome).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect(begun).toEqual([0, 1, 2, 3]);
});

test('a request that finds query-api busy is sent again, and not for ever', async () => {
  const { signal } = new AbortController();
  let sent = 0;
  const send = async (busyTimes: number) => {
    sent += 1;
    if (sent <= busyTimes) throw busy();
    return sent;
  };
  expect(await patiently(() => send(3), signal)).toBe(4);
  sent = 0;
  await expect(patiently(() => send(99), signal)).rejects.toThrow('busy');
  expect(sent).toBe(5);
});

test('what fails otherwise is not sent again, nor what nobody waits for', async () => {
  let sent = 0;
  const failing = (error: ApiError, signal: AbortSignal) =>
    patiently(() => {
      sent += 1;
      return Promise.reject(error);
    }, signal);
  await expect(failing(new ApiError(400, 'wrong'), new AbortController().signal)).rejects.toThrow('wrong');
  await expect(failing(busy(), AbortSignal.abort())).rejects.toThrow('busy');
  expect(sent).toBe(2);
});
