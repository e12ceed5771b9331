import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readSeconds } from '../../scripts/checks/test-seconds.ts';
import { sumsOf } from '../../scripts/checks/tier-sums.ts';

const ROOT = join(import.meta.dirname, '..', '..');

test('no tier takes longer than its budget, by what was measured on two quiet cores', async () => {
  const over = sumsOf(await readSeconds(ROOT)).filter(({ tier, seconds }) => seconds > tier.budgetSeconds);
  expect(over.map(({ tier, seconds }) => `${tier.name}: ${Math.round(seconds)} s`)).toEqual([]);
});
