import { expect, test } from 'vitest';
import { runChaos } from '../chaos/chaos.ts';
import { planFaults } from '../chaos/schedule.ts';
import { faultsOf, NO_FAULTS } from '../support/verify-delivery.ts';

test('half a minute of random faults loses, doubles and invents nothing', async () => {
  const { delivery, faults } = await runChaos({ seed: 7, minutes: 0.5, onProgress: () => undefined });
  expect(faultsOf(delivery)).toEqual(NO_FAULTS);
  expect(delivery.required).toBeGreaterThan(100);
  expect(faults).toBeGreaterThan(5);
});

test('the same seed plans the same faults, another seed others, and more minutes more', () => {
  const plan = planFaults(1, 5);
  expect(planFaults(1, 5)).toEqual(plan);
  expect(planFaults(2, 5)).not.toEqual(plan);
  const longer = planFaults(1, 10);
  expect(longer.slice(0, plan.length)).toEqual(plan);
  expect(longer.length).toBeGreaterThan(plan.length);
  expect(new Set(plan.map(({ target }) => target)).size).toBeGreaterThan(8);
});
