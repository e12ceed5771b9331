import { expect, test } from 'vitest';
import { planFaults } from './schedule.ts';

test('the same seed plans the same faults, another seed others, and more minutes more', () => {
  const plan = planFaults(1, 5);
  expect(planFaults(1, 5)).toEqual(plan);
  expect(planFaults(2, 5)).not.toEqual(plan);
  const longer = planFaults(1, 10);
  expect(longer.slice(0, plan.length)).toEqual(plan);
  expect(longer.length).toBeGreaterThan(plan.length);
  expect(new Set(plan.map(({ target }) => target)).size).toBeGreaterThan(8);
});
