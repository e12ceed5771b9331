import { expect, test } from 'vitest';
import fc, { HOW_TO_REPEAT, SEED } from './fast-check.ts';

test('the seed of the run decides what is random', () => {
  expect(HOW_TO_REPEAT).toContain(`SLUICE_TEST_SEED=${SEED} `);
  expect(fc.sample(fc.nat(), 20)).toEqual(fc.sample(fc.nat(), { numRuns: 20, seed: SEED }));
  expect(fc.sample(fc.nat(), 20)).not.toEqual(fc.sample(fc.nat(), { numRuns: 20, seed: SEED ^ 1 }));
});

test('a property that fails says how to repeat it, and what it failed with', async () => {
  const fails = fc.asyncProperty(fc.nat(), async () => {
    throw new Error('what went wrong');
  });
  await expect(fc.assert(fails)).rejects.toMatchObject({
    message: expect.stringContaining(HOW_TO_REPEAT),
    cause: expect.objectContaining({ message: 'what went wrong' }),
  });
});
