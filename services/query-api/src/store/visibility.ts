import type { Sql } from './sql.ts';
import type { Deletion, Tables } from './tables.ts';

/**
 * Returns what writes the condition that the events of deleted users meet until they are erased; `undefined` when no
 * deletion of the workspace is pending.
 *
 * @throws {Problem} `store_unavailable`, `overloaded` when it is not known what is deleted
 */
export type HiddenCondition = (workspace: string) => Promise<((tables: Tables) => Sql) | undefined>;

/**
 * Returns the time from which on the events of a workspace are kept: older ones have expired, and no read returns them. In
 * milliseconds, the start of a UTC day; `undefined` when all are kept.
 *
 * @throws {Problem} `store_unavailable`, `overloaded` when it is not known for how long they are kept
 */
export type KeptFrom = (workspace: string) => Promise<number | undefined>;

/** Which of the stored events of a workspace may be returned. */
export interface Visibility {
  readonly hiddenCondition: HiddenCondition;
  readonly keptFrom: KeptFrom;
  /** Returns the deletions of a workspace that another server has, and this one perhaps not yet. Default: there are none. */
  readonly deletionsElsewhere?: (workspace: string) => readonly Deletion[];
}
