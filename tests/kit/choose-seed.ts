// A vitest globalSetup: chooses what everything random in tests follows from.
import { randomInt } from 'node:crypto';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Decides everything that is random in tests. */
    seed: number;
  }
}

export default function setup(project: TestProject): void {
  const seed = parseSeed(process.env['SLUICE_TEST_SEED']);
  console.error(`SLUICE_TEST_SEED=${seed} makes the same random choices as this run`);
  project.provide('seed', seed);
}

/** @throws Error on anything but a whole number that fast-check takes for a seed */
function parseSeed(value: string | undefined): number {
  const seed = value ? Number(value) : randomInt(2 ** 31);
  if ((seed | 0) !== seed) throw new Error(`SLUICE_TEST_SEED is "${value}"; use a whole number of 32 bits`);
  return seed;
}
