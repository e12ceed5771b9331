import { expect, test } from 'vitest';
import fc, { HOW_TO_REPEAT, SEED, sample } from './fast-check.ts';

test('the seed of the run decides what is random', () => {
  expect(HOW_TO_REPEAT).toContain(`SLUICE_TEST_SEED=${SEED} `);
  expect(fc.sample(fc.nat(), 20)).toEqual(fc.sample(fc.nat(), { numRuns: 20, seed: SEED }));
  expect(fc.sample(fc.nat(), 20)).not.toEqual(fc.sample(fc.nat(), { numRuns: 20, seed: SEED ^ 1 }));
});

test('each sample has other values, which the seed decides', () => {
  expect([sample(fc.uuid(), 8), sample(fc.uuid(), 8)]).toEqual(
    [1, 2].map((number) => fc.sample(fc.uuid(), { numRuns: 8, seed: SEED + number })),
  );
  expect(new Set([...sample(fc.uuid(), 8), ...sample(fc.uuid(), 8)]).size).toBe(16);
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
