import type { Difference, Hour } from './books.ts';
import type { Selection } from './intake.ts';
import type { Kind } from './log-rows.ts';

/** A row that is missing, invented or stored twice. */
export interface ListedDifference {
  readonly workspace: string;
  readonly received: number;
  readonly kind: Kind;
  readonly difference: Difference;
  readonly key: string;
  readonly topic: string;
  readonly partition: number | null;
  readonly offset: number | null;
  readonly line: number | null;
  readonly detail: string;
}

export interface AuditResult extends Selection {
  readonly id: string;
  readonly startedMs: number;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly balancedThroughMs: number;
  readonly hours: readonly Hour[];
  readonly differences: readonly ListedDifference[];
  readonly notes: readonly string[];
}
