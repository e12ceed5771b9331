import type { Row, Scenario } from './scenario.ts';
import type { Variant } from './variant.ts';

/** What actions need besides the world, and what never changes. */
export interface Rules {
  readonly scenario: Scenario;
  readonly variant: Variant;
  /** All rows; worlds refer to them by index. */
  readonly rows: readonly Row[];
  /** All users; worlds refer to them by index. */
  readonly users: readonly string[];
  /** The rows from this one on belong to the log that grew again, under a newer leader epoch. */
  readonly firstRegrown: number;
}

export function createRules(scenario: Scenario, variant: Variant): Rules {
  const { logs, cut } = scenario;
  const before = logs.flat();
  const rows = [...before, ...(cut?.rows ?? [])];
  const users = [...new Set(rows.flatMap((row) => (row.kind === 'poison' ? [] : [row.user])))];
  return { scenario, variant, rows, users, firstRegrown: before.length };
}
