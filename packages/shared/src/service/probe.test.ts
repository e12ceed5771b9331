import { expect, test } from 'vitest';
import { setClockBack } from '../testing/clock.ts';
import { eventually } from '../testing/eventually.ts';
import { Probe } from './probe.ts';

test('a probe notices what changes, at most once a second, also when the clock was set back', async () => {
  let isReachable = true;
  let requests = 0;
  const probe = new Probe('it cannot be reached', 1_000, async () => {
    requests += 1;
    if (!isReachable) throw new Error('away');
  });
  expect(await probe.check()).toBeUndefined();
  isReachable = false;
  setClockBack();
  await eventually(() => probe.check()).toBe('it cannot be reached');
  expect(requests).toBe(2);
});
