import { sleep } from '@sluice/shared/retry';
import { eventually } from '@sluice/shared/testing/eventually';
import { test } from 'vitest';
import { LoadMeter } from './load-meter.ts';

test('the load is high while the event loop works, and low while it waits', async () => {
  const load = new LoadMeter();
  const afterWaiting = async () => {
    await sleep(200);
    return load.share();
  };
  const afterWork = async () => {
    for (const until = performance.now() + 200; performance.now() < until; );
    await sleep(1);
    return load.share();
  };
  await eventually(afterWaiting).toBeLessThan(0.5);
  await eventually(afterWork).toBeGreaterThan(0.8);
});

test('the load is high while much comes, however little work that is', async () => {
  const load = new LoadMeter();
  const afterCalls = async (count: number) => {
    for (let calls = 0; calls < count; calls += 1) load.count();
    await sleep(200);
    return load.share();
  };
  await eventually(() => afterCalls(1_000)).toBe(1);
  await eventually(() => afterCalls(0)).toBeLessThan(0.5);
});
