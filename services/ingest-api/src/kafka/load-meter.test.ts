import { sleep } from '@sluice/shared/retry';
import { expect, test } from 'vitest';
import { LoadMeter } from './load-meter.ts';

test('the load is high while the event loop works, and low while it waits', async () => {
  const load = new LoadMeter();
  await sleep(200);
  const idle = load.share();
  for (const until = performance.now() + 200; performance.now() < until; );
  await sleep(1);
  const busy = load.share();
  expect(idle).toBeLessThan(0.5);
  expect(busy).toBeGreaterThan(0.8);
});

test('the load is high while much comes, however little work that is', async () => {
  const load = new LoadMeter();
  for (let calls = 0; calls < 1_000; calls += 1) load.count();
  await sleep(200);
  expect(load.share()).toBe(1);
  await sleep(200);
  expect(load.share()).toBeLessThan(0.5);
});
