import type { Reservation } from '@sluice/shared/http/memory-budget';
import type { QueryKind, QueryPool } from '../metrics.ts';
import type { ReadRequest } from './clickhouse-reader.ts';
import type { QuerySettings } from './query-settings.ts';
import type { Sql } from './sql.ts';
import type { Tables } from './tables.ts';
import type { TimeBudget } from './time-budget.ts';

/** The request that a query belongs to. */
export interface QueryContext {
  readonly workspace: string;
  /** Names the query in ClickHouse: in its `query_id`, and as its `log_comment`. Default: the query has no request. */
  readonly requestId?: string;
  /** Ends the query, in ClickHouse too. */
  readonly signal?: AbortSignal | undefined;
  /** Where the request reserves what it holds. Default: nothing is reserved. */
  readonly memory?: Reservation | undefined;
}

/** A statement, written for the tables of this deployment. */
export interface Statement {
  readonly statement: (tables: Tables) => Sql;
}

/**
 * A statement that leaves out the events of deleted users. Which those are is decided when the query has its slot: a
 * deletion may be stored while it waits.
 */
export interface HidingStatement {
  /** @param hidden the condition that the events of pending deletions meet, if there are any */
  readonly hiding: (tables: Tables, hidden: Sql | undefined) => Sql;
}

export type Query = QueryOptions & (Statement | HidingStatement);

export interface QueryOptions extends QueryContext {
  readonly kind: QueryKind;
  /** Whose slots it takes. Default: `pages`. */
  readonly pool?: QueryPool;
  /** Runs at once, without a slot: for a small query that others wait for, whose number is bounded. Default: false. */
  readonly urgent?: boolean;
  /**
   * How long the query may run, and how long it may wait before, in milliseconds. Default: what is left of `budget`, or
   * QUERY_TIMEOUT_MS.
   */
  readonly timeoutMs?: number;
  /** The time of the request that the query belongs to; it also says how long the query may wait. Default: none. */
  readonly budget?: TimeBudget;
  /**
   * How much longer to wait for the result, in milliseconds; after that ClickHouse counts as unavailable. Default:
   * 2,000. With 0, a query that takes too long counts as too expensive.
   */
  readonly graceMs?: number;
  /**
   * Whether another query follows when this one runs out of memory: then it is not repeated in small blocks first. Default:
   * false.
   */
  readonly isFollowed?: boolean;
  /** Settings of this query alone. Default: those of every query. */
  readonly settings?: QuerySettings;
  /** Called as {@link ReadRequest.onText}. */
  readonly onText?: ReadRequest['onText'];
}

/** A query for everything that it finds: it has no time limit, and runs until its client leaves. */
export type ExportQuery = Query & { readonly pool: 'exports'; readonly signal: AbortSignal };

/**
 * Returns what writes the condition that the events of deleted users meet until they are erased; `undefined` when no
 * deletion of the workspace is pending.
 *
 * @throws {Problem} `store_unavailable`, `overloaded` when it is not known what is deleted
 */
export type HiddenCondition = (workspace: string) => Promise<Statement['statement'] | undefined>;

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
}
