import { expect, test } from 'vitest';
import { Measurement } from './measurement.ts';

test('readers at the same time, and soon after, share one measurement', async () => {
  let measured = 0;
  const measurement = new Measurement({
    measure: async () => {
      measured += 1;
      return measured;
    },
    freshMs: 3_600_000,
    timeoutMs: 3_600_000,
  });
  expect(await Promise.all([measurement.read(), measurement.read()])).toEqual([1, 1]);
  expect(await measurement.read()).toBe(1);
});

test('an old result is measured again, and a failure leaves none', async () => {
  let fails = false;
  const failures: unknown[] = [];
  const measurement = new Measurement({
    measure: async () => {
      if (fails) throw new Error('away');
      return 'here';
    },
    freshMs: -1,
    timeoutMs: 3_600_000,
    onFailure: (error) => failures.push((error as Error).message),
  });
  expect(await measurement.read()).toBe('here');
  fails = true;
  expect(await measurement.read()).toBeUndefined();
  expect(failures).toEqual(['away']);
  fails = false;
  expect(await measurement.read()).toBe('here');
});

test('a measurement without a response is given up', async () => {
  const failures: unknown[] = [];
  const measurement = new Measurement<never>({
    measure: (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('the request was aborted')));
      }),
    freshMs: 0,
    timeoutMs: 1,
    onFailure: (error) => failures.push((error as Error).message),
  });
  expect(await measurement.read()).toBeUndefined();
  expect(failures).toEqual(['no response within 1 ms']);
});
