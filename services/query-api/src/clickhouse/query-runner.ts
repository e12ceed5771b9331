import { randomUUID } from 'node:crypto';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryConfig } from '../config.ts';
import type { QueryKind, QueryMetrics, QueryOutcome, SlotPool } from '../metrics.ts';
import { reserve } from '../request-memory.ts';
import type { ClickHouseReader, ReadRequest } from './clickhouse-reader.ts';
import type { ExportQuery, HiddenCondition, Query, QueryContext, QueryOptions } from './query.ts';
import { isTimeout, outcomeOf, queryProblem } from './query-error.ts';
import { POOL_SETTINGS, type QuerySettings, timeLimit } from './query-settings.ts';
import { QuerySlots } from './query-slots.ts';
import { AHEAD_BYTES_MAX } from './read-ahead.ts';
import { ClickHouseException, ConnectionFailure } from './read-failures.ts';
import { PACE_MS, ReadingPace } from './reading-pace.ts';
import type { Row, RowBatches } from './row-parser.ts';
import { inMemory } from './small-blocks.ts';
import type { Sql } from './sql.ts';
import { tablesOf } from './tables.ts';
import type { TimeBudget } from './time-budget.ts';

/** Runs queries, each of one workspace and within its budget. */
export interface QueryRunner {
  /**
   * Returns the rows in batches, as they arrive. The query is sent when the first batch is requested, which comes once
   * ClickHouse has begun its response. The query holds its slot until its last row is taken or its time is up: a slower
   * reader is cut off.
   *
   * @throws {Problem} `query_too_expensive`, `store_unavailable`, `overloaded`, `internal`
   */
  rows(query: Query): RowBatches;
  /**
   * Returns all rows of a query whose result is known to be small; throws as `rows` does. Their memory is reserved as they
   * arrive, and released with that of the query's context.
   */
  all(query: Query): Promise<readonly Row[]>;
  /**
   * Returns the bytes of an export, whose SQL ends with a FORMAT, as they arrive; otherwise as `rows`. It holds its slot
   * until it ends or its signal aborts, or until another workspace wants the slot while its reader is slow: then it ends
   * as `store_unavailable`.
   */
  bytes(query: ExportQuery): AsyncGenerator<Buffer, void, undefined>;
  /**
   * Waits until a response with users or organizations may be held in memory, and returns the function to call when it is
   * sent. A request asks before its first query.
   *
   * @throws {Problem} `overloaded`
   */
  holdEntities(request: QueryContext & { readonly budget: TimeBudget }): Promise<() => void>;
  /** Before the service stops: queries that wait are refused as `overloaded`, exports end, other running ones go on. */
  close(): void;
}

/** How long after its time budget a query that has not ended is given up, in milliseconds. */
const GRACE_MS = 2_000;

/** The memory of rows as a multiple of the text that ClickHouse sends: texts in arrays, and what becomes of them. */
const MEMORY_PER_CHARACTER = 2;

/** What an export takes: what is read ahead of a slow client (see read-ahead.ts), and the chunks on their way, in bytes. */
const EXPORT_BYTES = AHEAD_BYTES_MAX + 1_024 * 1_024;

/** One workspace may fill this share of the queue. */
const WAITING_SHARE = 1 / 4;

/**
 * Creates the query runner. Queries cannot write: each is sent as `readonly`. QUERY_CONNECTIONS_MAX of them run at
 * once, besides reports, exports and urgent ones; the reader needs a connection for each, and some to spare.
 */
export function createQueryRunner(
  reader: ClickHouseReader,
  config: QueryConfig,
  metrics: QueryMetrics,
  hiddenCondition: HiddenCondition,
): QueryRunner {
  const slots = createSlots(config, metrics);
  const tables = tablesOf(config);

  /** Ends exports: they might go on for hours. */
  const stopping = new AbortController();

  async function* rowsInSlot(query: Query): RowBatches {
    const release = query.urgent ? () => undefined : await slotFor(query);
    try {
      let decided: Sql | undefined = await statementOf(query);
      const timeoutMs = query.timeoutMs ?? query.budget?.leftMs() ?? config.QUERY_TIMEOUT_MS;
      yield* inMemory(query, timeoutMs, async function* (one, leftMs) {
        // The first run may have taken seconds: for the second one it is decided again what is hidden.
        const statement = decided ?? (await statementOf(query));
        decided = undefined;
        yield* rowsInTime({ ...one, ...statement }, leftMs, release);
      });
    } finally {
      release();
    }
  }

  async function slotFor({ workspace, signal, pool = 'pages', timeoutMs, budget }: Query): Promise<() => void> {
    const waitMs = budget?.waitLeftMs() ?? timeoutMs ?? config.QUERY_TIMEOUT_MS;
    const slot = slots[pool].acquire({ workspace, signal, timeoutMs: waitMs });
    return await (budget?.waiting(slot) ?? slot);
  }

  async function statementOf(query: Query): Promise<Sql> {
    if ('statement' in query) return query.statement(tables);
    const hidden = await hiddenCondition(query.workspace);
    return query.hiding(tables, hidden?.(tables));
  }

  /** @param onEnd called when the time is up or the client leaves */
  async function* rowsInTime(query: QueryOptions & Sql, timeoutMs: number, onEnd: () => void): RowBatches {
    const { signal } = query;
    const deadline = AbortSignal.timeout(timeoutMs + (query.graceMs ?? GRACE_MS));
    const end = signal ? AbortSignal.any([signal, deadline]) : deadline;
    // A reader that has stopped reading does not come back to release the slot.
    end.addEventListener('abort', onEnd);
    try {
      yield* reader.read(requestOf(query, end, timeLimit(timeoutMs)));
    } catch (error) {
      throw deadline.aborted && !(error instanceof ClickHouseException) ? deadline.reason : error;
    } finally {
      end.removeEventListener('abort', onEnd);
    }
  }

  async function* bytesInSlot(query: ExportQuery): AsyncGenerator<Buffer, void, undefined> {
    const { workspace } = query;
    const tooSlow = new AbortController();
    const signal = AbortSignal.any([query.signal, stopping.signal, tooSlow.signal]);
    const release = await slots.exports.acquire({ workspace, signal, timeoutMs: config.QUERY_TIMEOUT_MS });
    signal.addEventListener('abort', release);
    const memory = query.memory?.part();
    const pace = new ReadingPace();
    const checking = setInterval(() => {
      if (!pace.isSlow() || !slots.exports.isWantedBeside(workspace)) return;
      tooSlow.abort(new ConnectionFailure('another workspace waits to export, and the client reads too slowly'));
    }, PACE_MS);
    try {
      reserve(memory, EXPORT_BYTES);
      yield* pace.watch(reader.readBytes(requestOf({ ...query, ...(await statementOf(query)) }, signal, {})));
    } finally {
      clearInterval(checking);
      memory?.release();
      signal.removeEventListener('abort', release);
      release();
    }
  }

  function requestOf(query: QueryOptions & Sql, signal: AbortSignal, limits: QuerySettings): ReadRequest {
    const { sql, workspace } = query;
    const params = { ...query.params, ...tables.params, workspace };
    return {
      ...{ sql, params, signal, queryId: queryIdOf(query) },
      onText: query.onText,
      settings: {
        ...limits,
        ...POOL_SETTINGS[query.pool ?? 'pages'],
        ...query.settings,
        ...(query.requestId && { log_comment: query.requestId }),
      },
    };
  }

  const rows = (query: Query) => measured(metrics, query, rowsInSlot(query));

  return {
    rows,
    bytes: (query) => measured(metrics, query, bytesInSlot(query)),
    all: (query) => collected(rows, query),
    holdEntities: (request) => slotForResponse(slots.entities, request),
    close() {
      stopping.abort(new ConnectionFailure('the service is stopping'));
      for (const pool of Object.values(slots)) pool.close();
    },
  };
}

function createSlots(config: QueryConfig, metrics: QueryMetrics): Readonly<Record<SlotPool, QuerySlots>> {
  function slotsOf(pool: SlotPool, running: number, runningOfWorkspace: number): QuerySlots {
    const waiting = config.QUERY_PENDING_MAX;
    const waitingOfWorkspace = Math.ceil(waiting * WAITING_SHARE);
    return new QuerySlots({ running, runningOfWorkspace, waiting, waitingOfWorkspace }, metrics, pool);
  }
  return {
    pages: slotsOf('pages', config.QUERY_CONNECTIONS_MAX, config.QUERY_CONCURRENCY_PER_WORKSPACE),
    reports: slotsOf('reports', config.REPORT_CONNECTIONS_MAX, config.REPORT_CONCURRENCY_PER_WORKSPACE),
    exports: slotsOf('exports', config.EXPORT_CONNECTIONS_MAX, 1),
    entities: slotsOf('entities', config.QUERY_CONNECTIONS_MAX, config.QUERY_CONCURRENCY_PER_WORKSPACE),
  };
}

/** Returns all rows. Their memory is reserved as they arrive, and released when not all of them do. */
async function collected(rows: QueryRunner['rows'], query: Query): Promise<readonly Row[]> {
  const memory = query.memory?.part();
  const onText = (characters: number) => reserve(memory, MEMORY_PER_CHARACTER * characters);
  const found: Row[] = [];
  try {
    for await (const batch of rows({ ...query, onText })) found.push(...batch);
  } catch (error) {
    memory?.release();
    throw error;
  }
  return found;
}

async function slotForResponse(
  slots: QuerySlots,
  { workspace, signal, budget }: QueryContext & { readonly budget: TimeBudget },
): Promise<() => void> {
  try {
    return await budget.waiting(slots.acquire({ workspace, signal, timeoutMs: budget.waitLeftMs() }));
  } catch (error) {
    signal?.throwIfAborted();
    throw queryProblem(outcomeOf(error), error);
  }
}

/** Measures a query, and turns its failure into a problem. */
async function* measured<Item>(
  metrics: QueryMetrics,
  query: Query,
  items: AsyncIterable<Item>,
): AsyncGenerator<Item, void, undefined> {
  const settle = startTimer(metrics, query.kind);
  const cancel = () => settle('cancelled');
  // The reader may never request another batch once its client is gone.
  query.signal?.addEventListener('abort', cancel);
  // Holds also when the reader stops before the end.
  let outcome: QueryOutcome = 'cancelled';
  try {
    yield* items;
    outcome = 'ok';
  } catch (error) {
    if (query.signal?.aborted) outcome = 'cancelled';
    // A problem is that of the query for what is hidden.
    else if (error instanceof Problem) outcome = outcomeOf(error.cause);
    else outcome = query.graceMs === 0 && isTimeout(error) ? 'too_expensive' : outcomeOf(error);
    throw error instanceof Problem ? error : queryProblem(outcome, error);
  } finally {
    query.signal?.removeEventListener('abort', cancel);
    settle(outcome);
  }
}

/** How much of a request's id is part of a query's id, in characters. */
const REQUEST_ID_CHARACTERS_MAX = 64;

/**
 * Returns the id of a query, which is never the same: requests with equal ids run at the same time, and an id must not
 * be that of a statement of the writer.
 */
function queryIdOf({ kind, requestId = '-' }: QueryOptions): string {
  return `query-api/${kind}/${requestId.slice(0, REQUEST_ID_CHARACTERS_MAX)}/${randomUUID()}`;
}

/** Starts the clock of a query. The first call of the returned function stops it. */
function startTimer({ queryDurationSeconds }: QueryMetrics, kind: QueryKind): (outcome: QueryOutcome) => void {
  const startedAt = performance.now();
  let settled = false;
  return (outcome) => {
    if (!settled) queryDurationSeconds.observe({ kind, outcome }, (performance.now() - startedAt) / 1_000);
    settled = true;
  };
}
