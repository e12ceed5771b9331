import { sleep } from '@sluice/shared/retry';
import { expect, test } from 'vitest';
import { createLoadMeter } from './load-meter.ts';

test('the load is high while the event loop works, and low while it waits', async () => {
  const load = createLoadMeter();
  await sleep(200);
  const idle = load();
  for (const until = performance.now() + 200; performance.now() < until; );
  await sleep(1);
  const busy = load();
  expect(idle).toBeLessThan(0.5);
  expect(busy).toBeGreaterThan(0.8);
});
