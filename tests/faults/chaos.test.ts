import { expect, test } from 'vitest';
import { runChaos } from '../chaos/chaos.ts';
import { faultsOf, NO_FAULTS } from '../support/verify-delivery.ts';

test('half a minute of random faults loses, doubles and invents nothing', async () => {
  const { delivery, faults } = await runChaos({ seed: 7, minutes: 0.5, onProgress: () => undefined });
  expect(faultsOf(delivery)).toEqual(NO_FAULTS);
  expect(delivery.required).toBeGreaterThan(100);
  expect(faults).toBeGreaterThan(5);
});
