import { ClickHouseError, type ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { Histogram, type Registry } from 'prom-client';
import type { QueryConfig } from '../config.ts';
import { type Outcome, outcomeOf, storeProblem } from './query-error.ts';
import { createQuerySlots, type SlotLimits, SlotRefused } from './query-slots.ts';
import type { Sql } from './sql.ts';

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
  /** Runs at once, without a slot: for a small query that others wait for, whose number is bounded. Default: false. */
  readonly urgent?: boolean;
  /** Ends the query, on the server too. */
  readonly signal?: AbortSignal | undefined;
  /** What the server may take, in milliseconds, and how long the query may wait before. Default: QUERY_TIMEOUT_MS. */
  readonly timeoutMs?: number;
  /**
   * How much longer to wait for its answer, in milliseconds; past that it counts as unavailable. Default: 2,000. With 0
   * there is no difference between a query that is too expensive and one that takes or waits too long.
   */
  readonly graceMs?: number;
}

/** One row: its columns in the order of the SELECT. */
export type Row = readonly unknown[];

/** Runs queries of one workspace each, within their budgets. */
export interface Store {
  /**
   * The rows as they arrive, in batches. The first batch comes once the server has begun to answer; nothing has been
   * read before. The query holds its slot until its last row was taken, or its time is up: a reader that is slower than
   * that is cut off.
   *
   * @throws {Problem} `query_too_expensive`, `store_unavailable`, `overloaded`, `internal`
   */
  rows(query: Query): AsyncGenerator<readonly Row[], void, undefined>;
  /** All rows at once, of a query whose result is known to be small. */
  all(query: Query): Promise<readonly Row[]>;
  /** Before the service stops: queries that wait for others are refused as `overloaded`, those that run go on. */
  close(): void;
}

/** How long after its time budget a query that has not ended is given up, in milliseconds. */
const GRACE_MS = 2_000;

/** One workspace may fill this part of the queue. */
const WAITING_SHARE = 1 / 4;

/**
 * Creates the store. Queries cannot write: ClickHouse is told so with each of them (`readonly`). As many run at once as
 * the configuration says, besides urgent ones; the client is to have a connection for each, and some to spare.
 */
export function createStore(client: ClickHouseClient, config: QueryConfig, registry: Registry): Store {
  const slots = createQuerySlots(slotLimits(config), registry);
  const duration = new Histogram({
    name: 'sluice_query_duration_seconds',
    help: 'Time from a query to the end of its result, its wait included, by what it is for and how it ended.',
    labelNames: ['kind', 'outcome'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });

  async function* rows(query: Query): AsyncGenerator<readonly Row[], void, undefined> {
    const settle = timed(query.kind);
    const cancel = () => settle('cancelled');
    // A reader whose client went away may never come back here.
    query.signal?.addEventListener('abort', cancel);
    // Also when the reader stops reading before the end.
    let outcome: Outcome = 'cancelled';
    try {
      yield* readInSlot(query, query.timeoutMs ?? config.QUERY_TIMEOUT_MS);
      outcome = 'ok';
    } catch (error) {
      if (query.signal?.aborted) outcome = 'cancelled';
      else outcome = query.graceMs === 0 && isLate(error) ? 'too_expensive' : outcomeOf(error);
      throw storeProblem(outcome, error);
    } finally {
      query.signal?.removeEventListener('abort', cancel);
      settle(outcome);
    }
  }

  /** Starts the clock of a query; what is returned stops it, the first time that it is called. */
  function timed(kind: QueryKind): (outcome: Outcome) => void {
    const startedAt = performance.now();
    let settled = false;
    return (outcome) => {
      if (!settled) duration.observe({ kind, outcome }, (performance.now() - startedAt) / 1_000);
      settled = true;
    };
  }

  async function* readInSlot(query: Query, timeoutMs: number): AsyncGenerator<readonly Row[], void, undefined> {
    const { workspace, signal } = query;
    const release = query.urgent ? () => undefined : await slots.acquire({ workspace, signal, timeoutMs });
    const deadline = AbortSignal.timeout(timeoutMs + (query.graceMs ?? GRACE_MS));
    const end = signal ? AbortSignal.any([signal, deadline]) : deadline;
    // Nor may a reader come back that has stopped reading.
    end.addEventListener('abort', release);
    try {
      yield* read(query, timeoutMs, end);
    } catch (error) {
      throw deadline.aborted && !(error instanceof ClickHouseError) ? deadline.reason : error;
    } finally {
      end.removeEventListener('abort', release);
      release();
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
      // Closing ends the rows like the last one does.
      signal.throwIfAborted();
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
      clickhouse_settings: querySettings(config, timeoutMs),
    });
  }

  return {
    rows,
    async all(query) {
      const found: Row[] = [];
      for await (const batch of rows(query)) found.push(...batch);
      return found;
    },
    close: slots.close,
  };
}

/** Whether the time of a query was up, rather than anything amiss. */
function isLate(error: unknown): boolean {
  if (error instanceof SlotRefused) return error.reason === 'timed_out';
  return error instanceof DOMException && error.name === 'TimeoutError';
}

function slotLimits(config: QueryConfig): SlotLimits {
  return {
    running: config.QUERY_CONNECTIONS_MAX,
    runningOfWorkspace: config.QUERY_CONCURRENCY_PER_WORKSPACE,
    waiting: config.QUERY_PENDING_MAX,
    waitingOfWorkspace: Math.ceil(config.QUERY_PENDING_MAX * WAITING_SHARE),
  };
}

/** What every query is sent with: it cannot write, and stays within its budgets. */
export function querySettings(config: QueryConfig, timeoutMs: number): ClickHouseSettings {
  return {
    readonly: '1',
    max_execution_time: timeoutMs / 1_000,
    timeout_before_checking_execution_speed: 0,
    max_memory_usage: String(config.QUERY_MEMORY_BYTES_MAX),
    max_result_bytes: String(config.QUERY_RESULT_BYTES_MAX),
    // Of what is read, not of what might be: a page of the table's order ends long before the table does.
    max_bytes_to_read: String(config.QUERY_BYTES_READ_MAX),
    // Of what might be read. None: 0.
    max_rows_to_read: String(config.QUERY_ROWS_READ_MAX ?? 0),
    read_overflow_mode: 'throw',
    // As many as processors: 0.
    max_threads: config.QUERY_THREADS_MAX ?? 0,
    // Groups follow the sorting keys, so that a page of them reads no more than its rows.
    optimize_aggregation_in_order: 1,
    // Sub-selects of one query see the same rows, as a total needs.
    enable_shared_storage_snapshot_in_query: 1,
    cancel_http_readonly_queries_on_client_close: 1,
    // Reading ahead in every part takes a third longer where a page's rows lie far apart.
    read_in_order_use_buffering: 0,
    // Text indexes say which granules to read; the rows themselves decide. Answering from such an index alone loses
    // rows of a page in ClickHouse 26.7, together with use_top_k_dynamic_filtering.
    query_plan_direct_read_from_text_index: 0,
    query_plan_text_index_add_hint: 0,
  };
}
