import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { Histogram, type Registry } from 'prom-client';
import type { QueryConfig } from './config.ts';
import type { Sql } from './sql.ts';
import { type Outcome, outcomeOf, storeProblem } from './store-problem.ts';

/** What a query is for, as metrics name it. */
export type QueryKind =
  | 'events_page'
  | 'events_count'
  | 'pending_deletions'
  | 'entities_page'
  | 'entity_properties'
  | 'entity_times';

export interface Query extends Sql {
  readonly kind: QueryKind;
  readonly workspace: string;
  /** Ends the query, on the server too. */
  readonly signal?: AbortSignal | undefined;
  /** What the server may take, in milliseconds. Default: QUERY_TIMEOUT_MS. */
  readonly timeoutMs?: number;
  /** How much longer to wait for its answer, in milliseconds; past that it counts as unavailable. Default: 2,000. */
  readonly graceMs?: number;
}

/** One row: its columns in the order of the SELECT. */
export type Row = readonly unknown[];

/** Runs queries of one workspace each, within their budgets. */
export interface Store {
  /**
   * The rows as they arrive, in batches. The first batch comes once the server has begun to answer; nothing has been
   * read before.
   *
   * @throws {Problem} `query_too_expensive`, `store_unavailable`, `overloaded`, `internal`
   */
  rows(query: Query): AsyncGenerator<readonly Row[], void, undefined>;
  /** All rows at once, of a query whose result is known to be small. */
  all(query: Query): Promise<readonly Row[]>;
}

/** How long after its time budget a query without any answer is given up, in milliseconds. */
const GRACE_MS = 2_000;

/** Creates the store. Queries cannot write: ClickHouse is told so with each of them (`readonly`). */
export function createStore(client: ClickHouseClient, config: QueryConfig, registry: Registry): Store {
  let pending = 0;
  const duration = new Histogram({
    name: 'sluice_query_duration_seconds',
    help: 'Time from a query to the end of its result, by what it is for and how it ended.',
    labelNames: ['kind', 'outcome'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });

  async function* rows(query: Query): AsyncGenerator<readonly Row[], void, undefined> {
    if (pending >= config.QUERY_PENDING_MAX)
      throw storeProblem('overloaded', new Error('too many queries are waiting'));
    pending += 1;
    const startedAt = performance.now();
    const timeoutMs = query.timeoutMs ?? config.QUERY_TIMEOUT_MS;
    const deadline = AbortSignal.timeout(timeoutMs + (query.graceMs ?? GRACE_MS));
    // Also when the reader stops reading before the end.
    let outcome: Outcome = 'cancelled';
    try {
      yield* read(query, timeoutMs, query.signal ? AbortSignal.any([query.signal, deadline]) : deadline);
      outcome = 'ok';
    } catch (error) {
      if (query.signal?.aborted) outcome = 'cancelled';
      else if (deadline.aborted && query.graceMs === 0) outcome = 'too_expensive';
      else outcome = outcomeOf(error);
      throw storeProblem(outcome, error);
    } finally {
      pending -= 1;
      duration.observe({ kind: query.kind, outcome }, (performance.now() - startedAt) / 1_000);
    }
  }

  async function* read(
    query: Query,
    timeoutMs: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly Row[], void, undefined> {
    const result = await send(query, timeoutMs, signal);
    const close = () => result.close();
    signal.addEventListener('abort', close);
    try {
      for await (const batch of result.stream()) yield batch.map((row) => row.json<Row>());
    } finally {
      signal.removeEventListener('abort', close);
      result.close();
    }
  }

  /** A connection that was kept open may turn out to be closed when it is used; reading again does no harm. */
  async function send(query: Query, timeoutMs: number, signal: AbortSignal) {
    try {
      return await sendOnce(query, timeoutMs, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET' || signal.aborted) throw error;
      return await sendOnce(query, timeoutMs, signal);
    }
  }

  async function sendOnce({ sql, params, workspace }: Query, timeoutMs: number, signal: AbortSignal) {
    return await client.query({
      query: sql,
      query_params: { ...params, workspace },
      format: 'JSONCompactEachRow',
      abort_signal: signal,
      clickhouse_settings: {
        readonly: '1',
        max_execution_time: timeoutMs / 1_000,
        timeout_before_checking_execution_speed: 0,
        max_memory_usage: String(config.QUERY_MEMORY_BYTES_MAX),
        max_result_bytes: String(config.QUERY_RESULT_BYTES_MAX),
        // Groups follow the sorting keys, so that a page of them reads no more than its rows.
        optimize_aggregation_in_order: 1,
        cancel_http_readonly_queries_on_client_close: 1,
      },
    });
  }

  return {
    rows,
    async all(query) {
      const found: Row[] = [];
      for await (const batch of rows(query)) found.push(...batch);
      return found;
    },
  };
}
