import type { TestSeconds } from './test-seconds.ts';
import { TIERS, type Tier, tierOf } from './tiers.ts';

/** The files of a tier that a run had, and their seconds. */
export interface TierSum {
  readonly tier: Tier;
  readonly files: number;
  readonly seconds: number;
}

/** Returns the sum of each tier that has files, in the order of {@link TIERS}. */
export function sumsOf(seconds: TestSeconds): readonly TierSum[] {
  return TIERS.map((tier) => {
    const own = Object.entries(seconds).filter(([file]) => tierOf(file) === tier);
    return { tier, files: own.length, seconds: own.reduce((sum, [, one]) => sum + one, 0) };
  }).filter(({ files }) => files > 0);
}

/** One line per tier. */
export function describeTiers(seconds: TestSeconds): string {
  return sumsOf(seconds)
    .map(({ tier, files, seconds }) => {
      const numbers = [`${Math.round(seconds)} s`.padStart(8), `${tier.budgetSeconds} s`.padStart(8)];
      return `${tier.name.padEnd(10)} ${numbers.join(' of')}, ${files} files`;
    })
    .join('\n');
}
