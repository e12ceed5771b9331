import type { Span } from '@opentelemetry/api';
import type { Reservation } from '@sluice/shared/http/memory-budget';
import type { QueryKind, QueryPool } from '../metrics.ts';
import type { ReadRequest } from './clickhouse-reader.ts';
import type { QuerySettings } from './query-settings.ts';
import type { Sql } from './sql.ts';
import type { RequestStore } from './stores.ts';
import type { Tables } from './tables.ts';
import type { TimeBudget } from './time-budget.ts';

/** The request that a query belongs to. */
export interface QueryContext {
  readonly workspace: string;
  /** Names the query in ClickHouse: in its `query_id`, and as its `log_comment`. Default: the query has no request. */
  readonly requestId?: string;
  /** The request's span, of which that of the query is a child. Default: the query has none. */
  readonly span?: Span | undefined;
  /** What the request reads. Default: what any request reads now. */
  readonly store?: RequestStore | undefined;
  /** Ends the query, in ClickHouse too. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the request asks for persons: {@link Tables.arePersons}. Default: false. */
  readonly arePersons?: boolean;
  /** Whether its statements see whose the events of anonymous visitors are: {@link Tables.areLinked}. Default: false. */
  readonly isLinked?: boolean;
  /** Whether they see besides which users became others: {@link Tables.areMerged}. Default: false. */
  readonly isMerged?: boolean;
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
  /** Called when the query begins anew in another store, after some rows. Default: after the first row it fails instead. */
  readonly onRestart?: () => void;
  /** The properties of events whose values it reads, by which it is known which columns would be worth it. Default: none. */
  readonly properties?: readonly string[];
  /** Called as {@link ReadRequest.onText}. */
  readonly onText?: ReadRequest['onText'];
}

/** A query for everything that it finds: it has no time limit, and runs until its client leaves. */
export interface ExportQuery extends QueryOptions {
  readonly pool: 'exports';
  readonly signal: AbortSignal;
  /** Returns its statements, whose bytes follow each other: it keeps its slot until the last one has ended. */
  readonly statements: () => AsyncIterable<HidingStatement> | Iterable<HidingStatement>;
}
