import { randomUUID } from 'node:crypto';
import type { Logger } from '@sluice/shared/base/log';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryConfig } from '../config.ts';
import { RETRY_AFTER_SECONDS, reserve } from '../http/http.ts';
import type { QueryKind, QueryMetrics, QueryOutcome, QueryPool } from '../metrics.ts';
import type { ReadRequest, Row, RowBatches } from './clickhouse-reader.ts';
import { DefaultIdentities } from './links/default-identities.ts';
import type { ExportQuery, Query, QueryContext, QueryOptions } from './query.ts';
import { isOutOfBytes, isOutOfMemory, isOutOfTime, isTimeout, outcomeOf, queryProblem } from './query-error.ts';
import {
  ALL_WORKSPACES_SETTINGS,
  POOL_SETTINGS,
  type QuerySettings,
  SMALL_BLOCKS_SETTINGS,
  timeLimit,
} from './query-settings.ts';
import { QuerySlots } from './query-slots.ts';
import { AHEAD_BYTES_MAX } from './read-ahead.ts';
import { ClickHouseException, ConnectionFailure } from './read-failures.ts';
import { PACE_MS, ReadingPace } from './reading-pace.ts';
import type { Sql } from './sql.ts';
import { GivenUpStatements, StatementSlot } from './statement-slot.ts';
import { type Identities, NO_IDENTITIES, RequestStore, type Store, type Stores, type Visibility } from './stores.ts';
import type { FastSets, Tables } from './tables.ts';
import type { TimeBudget } from './time-budget.ts';

// What a query goes through, from outside to inside, in the order of this file:
//
//   measured            how long it takes and how it ends; its failure becomes a problem. Waiting for a slot counts.
//   rowsInSlot          it waits for a slot of its pool, and keeps it in whatever store and however often it runs
//   withFailover        it runs again in another store when its store fails before the first row
//   rowsOf              its statement is written for the store, and says what is hidden now; it runs again within the same
//                       time when it ran out of memory, or read too many bytes
//   rowsInTime          it ends when its time is up or its client leaves
//   reader.read         it is sent, and its rows arrive (clickhouse-reader.ts)

/** How long after its time budget a query that has not ended is given up, in milliseconds. */
const GRACE_MS = 2_000;

/** The memory of rows as a multiple of the text that ClickHouse sends: texts in arrays, and what becomes of them. */
const MEMORY_PER_CHARACTER = 2;

/** What an export takes: what is read ahead of a slow client (see read-ahead.ts), and the chunks on their way, in bytes. */
const EXPORT_BYTES = AHEAD_BYTES_MAX + 1_024 * 1_024;

/** Is told which properties a statement of a workspace has read from the text, and how many bytes it has read. */
export type NoteRead = (workspace: string, names: readonly string[], bytes: number) => void;

type RunnerPool = QueryPool | 'entities';

/** One workspace may fill this share of the queue. */
const WAITING_SHARE = 1 / 4;

/**
 * Runs queries, each of one workspace and within its budget. They cannot write: each is sent as `readonly`.
 * QUERY_CONNECTIONS_MAX of them run at once, besides reports, exports and urgent ones; the reader needs a connection for
 * each, and some to spare.
 */
export class QueryRunner {
  readonly #stores: Stores;
  readonly #config: QueryConfig;
  readonly #metrics: QueryMetrics;
  readonly #slots: Readonly<Record<RunnerPool, QuerySlots>>;
  /** Ends exports: they might go on for hours. */
  readonly #stopping = new AbortController();
  readonly #givenUp: GivenUpStatements;
  readonly #noteRead: NoteRead | undefined;
  /** What requests see that do not say whether they ask for persons. */
  readonly defaultIdentities = new DefaultIdentities(this);

  /**
   * @param logger is told of statements that go on after they were given up; default: nobody is
   * @param noteRead default: nobody is told
   */
  constructor(stores: Stores, config: QueryConfig, metrics: QueryMetrics, logger?: Logger, noteRead?: NoteRead) {
    this.#noteRead = noteRead;
    this.#givenUp = new GivenUpStatements(logger);
    metrics.countOutliving(() => this.#givenUp.outlivingCount);
    this.#stores = stores;
    this.#config = config;
    this.#metrics = metrics;
    this.#slots = slotsOfPools(config, metrics);
  }

  /**
   * Returns the rows in batches, as they arrive. The query is sent when the first batch is requested, which comes once
   * ClickHouse has begun its response. The query holds its slot until its last row is taken or its time is up: a slower
   * reader is cut off.
   *
   * @throws {Problem} `query_too_expensive`, `store_unavailable`, `overloaded`, `internal`
   */
  rows(query: Query): RowBatches {
    return measured(this.#metrics, query, this.#rowsInSlot(query));
  }

  /**
   * Returns all rows of a query whose result is known to be small; throws as `rows` does. Their memory is reserved as they
   * arrive, and released with that of the query's context, or when not all of them arrive.
   */
  async all(query: Query): Promise<readonly Row[]> {
    const memory = query.memory?.part();
    const onText = (characters: number) => reserve(memory, MEMORY_PER_CHARACTER * characters);
    let found: Row[] = [];
    const onRestart = () => {
      found = [];
    };
    try {
      for await (const batch of this.rows({ ...query, onText, onRestart })) found.push(...batch);
    } catch (error) {
      memory?.release();
      throw error;
    }
    return found;
  }

  /**
   * Returns the bytes of an export, whose statements end with a FORMAT, as they arrive; otherwise as `rows`. It holds its slot
   * until it ends or its signal aborts, or until another workspace wants the slot while its reader is slow: then it ends
   * as `store_unavailable`.
   */
  bytes(query: ExportQuery): AsyncGenerator<Buffer, void, undefined> {
    return measured(this.#metrics, query, this.#bytesInSlot(query));
  }

  /** Returns what a workspace has of links and merges. @throws {Problem} `store_unavailable`, `overloaded` */
  async identities({ workspace, store }: QueryContext): Promise<Identities> {
    const { visibility } = await this.#storeOf({ workspace, store }).current();
    return (await visibility.identities?.(workspace)) ?? NO_IDENTITIES;
  }

  /**
   * Waits until a response with users or organizations may be held in memory, and returns the function to call when it is
   * sent. A request asks before its first query.
   *
   * @throws {Problem} `overloaded`
   */
  async holdEntities({ workspace, signal, budget }: QueryContext & { readonly budget: TimeBudget }) {
    const slot = this.#slots.entities.acquire({ workspace, signal, timeoutMs: budget.waitLeftMs() });
    try {
      return await budget.waiting(slot);
    } catch (error) {
      signal?.throwIfAborted();
      throw queryProblem(outcomeOf(error), error);
    }
  }

  /**
   * Waits for a slot of a report, for statements of a client. A workspace gets none while ClickHouse still runs a statement of it
   * two seconds after that was given up.
   *
   * @throws {SlotRefused}
   * @throws {Problem} `overloaded`
   */
  async reportSlot({ workspace, signal }: QueryContext): Promise<StatementSlot> {
    this.#refuseBesideOutliving(workspace);
    const slot = await this.#slotFor({ kind: 'sql', pool: 'reports', workspace, signal });
    try {
      this.#refuseBesideOutliving(workspace);
      return slot;
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  #refuseBesideOutliving(workspace: string): void {
    if (!this.#givenUp.isOutliving(workspace)) return;
    const message =
      'ClickHouse still runs an earlier statement of this workspace, whose time was up or whose client left; send the next one when it has ended.';
    throw new Problem('overloaded', message, { retryAfter: RETRY_AFTER_SECONDS });
  }

  /** Before the service stops: queries that wait are refused as `overloaded`, exports end, other running ones go on. */
  close(): void {
    this.#stopping.abort(new ConnectionFailure('the service is stopping'));
    for (const pool of Object.values(this.#slots)) pool.close();
    this.#givenUp.close();
  }

  async *#rowsInSlot(query: Query): RowBatches {
    const slot = query.urgent ? undefined : await this.#slotFor(query);
    const leftMs = countDown(() => query.timeoutMs ?? query.budget?.leftMs() ?? this.#config.QUERY_TIMEOUT_MS);
    try {
      const run = (store: Store) => rowsOf({ ...query, noteRead: this.#noteRead }, store, leftMs, slot);
      yield* withFailover(this.#storeOf(query), run, query.onRestart);
    } finally {
      slot?.release();
    }
  }

  #storeOf({ store }: QueryContext): RequestStore {
    return store ?? new RequestStore(this.#stores);
  }

  async #slotFor({ workspace, signal, pool = 'pages', timeoutMs, budget }: QueryOptions): Promise<StatementSlot> {
    const waitMs = budget?.waitLeftMs() ?? timeoutMs ?? this.#config.QUERY_TIMEOUT_MS;
    const slot = this.#slots[pool].acquire({ workspace, signal, timeoutMs: waitMs });
    return this.#statementSlot(await (budget?.waiting(slot) ?? slot), workspace);
  }

  #statementSlot(release: () => void, workspace: string): StatementSlot {
    return new StatementSlot(release, workspace, this.#givenUp);
  }

  async *#bytesInSlot(query: ExportQuery): AsyncGenerator<Buffer, void, undefined> {
    const { workspace } = query;
    const { exports: slots } = this.#slots;
    const tooSlow = new AbortController();
    const signal = AbortSignal.any([query.signal, this.#stopping.signal, tooSlow.signal]);
    const free = await slots.acquire({ workspace, signal, timeoutMs: this.#config.QUERY_TIMEOUT_MS });
    const slot = this.#statementSlot(free, workspace);
    const { release } = slot;
    signal.addEventListener('abort', release);
    const memory = query.memory?.part();
    const pace = new ReadingPace();
    const checking = setInterval(() => {
      if (!pace.isSlow() || !slots.isWantedBeside(workspace)) return;
      tooSlow.abort(new ConnectionFailure('another workspace waits to export, and the client reads too slowly'));
    }, PACE_MS);
    try {
      reserve(memory, EXPORT_BYTES);
      const store = await this.#storeOf(query).current();
      for await (const statement of query.statements()) {
        const written = await statementOf({ ...query, ...statement }, store);
        const request = requestOf({ ...query, ...written }, store.tables, signal, {});
        yield* pace.watch(store.reader.readBytes({ ...request, watch: slot.watch(store.givenUp) }));
      }
    } finally {
      clearInterval(checking);
      memory?.release();
      signal.removeEventListener('abort', release);
      release();
    }
  }
}

/**
 * Measures how long a query takes and how it ends, and turns its failure into a problem.
 *
 * @throws {Problem}
 */
export async function* measured<Item>(
  metrics: QueryMetrics,
  query: QueryOptions,
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
    const failure = query.signal?.aborted ? 'cancelled' : failureOf(error, query);
    outcome = failure !== 'cancelled' && isProblemOfSql(error) ? 'invalid' : failure;
    // A problem is that of the query for what is hidden, or of the client's SQL.
    throw error instanceof Problem ? error : queryProblem(failure, error);
  } finally {
    query.signal?.removeEventListener('abort', cancel);
    settle(outcome);
  }
}

/**
 * Returns how a query failed. Of a problem the cause decides. An urgent query is no client's: when ClickHouse is too slow for it,
 * others have used up its time.
 */
function failureOf(error: unknown, { graceMs, urgent }: QueryOptions): ReturnType<typeof outcomeOf> {
  if (error instanceof Problem) return outcomeOf(error.cause);
  if (urgent && isOutOfTime(error) && !(isTimeout(error) && graceMs !== 0)) return 'overloaded';
  return graceMs === 0 && isTimeout(error) ? 'too_expensive' : outcomeOf(error);
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

/** Whether a client sent SQL that it must not send, or where it must not send any. */
function isProblemOfSql(error: unknown): boolean {
  return error instanceof Problem && (error.code === 'invalid_sql' || error.code === 'sql_not_available');
}

function slotsOfPools(config: QueryConfig, metrics: QueryMetrics): Readonly<Record<RunnerPool, QuerySlots>> {
  function slotsOf(pool: RunnerPool, running: number, runningOfWorkspace: number): QuerySlots {
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

/** Returns a function that returns the whole time when it is called first, and from then on what is left of it. */
function countDown(wholeMs: () => number): () => number {
  let endsAt: number | undefined;
  return () => {
    if (endsAt !== undefined) return Math.max(1, Math.floor(endsAt - performance.now()));
    const timeMs = wholeMs();
    endsAt = performance.now() + timeMs;
    return timeMs;
  };
}

/**
 * Runs a query, and again in another store when its store fails before the first row.
 *
 * @param onRestart is called when the query begins anew after some rows; without it, it does not then
 */
async function* withFailover(
  requestStore: RequestStore,
  run: (store: Store) => RowBatches,
  onRestart?: () => void,
): RowBatches {
  for (let store = await requestStore.current(); ; ) {
    let hasRows = false;
    try {
      for await (const batch of run(store)) {
        hasRows = true;
        yield batch;
      }
      return;
    } catch (error) {
      const mayRestart = (!hasRows || onRestart !== undefined) && isStoreAway(error);
      const other = mayRestart ? await requestStore.otherThan(store) : undefined;
      if (!other) throw error;
      store = other;
      onRestart?.();
    }
  }
}

/** A problem is that of the query for what is hidden. */
function isStoreAway(error: unknown): boolean {
  return outcomeOf(error instanceof Problem ? error.cause : error) === 'unavailable';
}

/**
 * Runs what reads a store, and again when its store has failed and there is another one.
 *
 * @param run has to have sent nothing when it rejects
 */
export async function untilStoreAnswers<Result>(
  requestStore: RequestStore,
  run: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!isStoreAway(error)) throw error;
      const store = await requestStore.current().catch(() => undefined);
      if (!store || !(await requestStore.otherThan(store))) throw error;
    }
  }
}

/**
 * Runs a query, and again in small blocks within the same time when it ran out of memory, or read too many bytes, before its
 * first row: blocks of large events may have been too large, and rows of other workspaces may have been read with its own
 * (docs/design/decisions/0039-blocks-of-large-events.md, 0094-what-others-stored.md).
 *
 * @param timeLeftMs returns how long both may take together, in milliseconds
 */
async function* rowsOf(
  query: Query & Noting,
  store: Store,
  timeLeftMs: () => number,
  slot: StatementSlot | undefined,
): RowBatches {
  const statement = await statementOf(query, store);
  const timeoutMs = timeLeftMs();
  const startedAt = performance.now();
  let hasRows = false;
  try {
    for await (const batch of rowsInTime(query, store, statement, timeoutMs, slot)) {
      hasRows = true;
      yield batch;
    }
  } catch (error) {
    if (hasRows || !isForSmallBlocks(error, query)) throw error;
    const leftMs = Math.max(1, Math.floor(timeoutMs - (performance.now() - startedAt)));
    const settings = { ...query.settings, ...SMALL_BLOCKS_SETTINGS };
    // The first run may have taken seconds: it is decided again what is hidden.
    const again = statementOf(query, { ...store, tables: store.tables.comparingWorkspaceFirst() });
    yield* rowsInTime({ ...query, settings }, store, again, leftMs, slot);
  }
}

function isForSmallBlocks(error: unknown, { isFollowed }: QueryOptions): boolean {
  return isOutOfBytes(error) || (isOutOfMemory(error) && !isFollowed);
}

interface Noting {
  readonly noteRead?: NoteRead | undefined;
}

/** A statement, and what is known of fast properties. */
interface Written extends Sql {
  readonly fast: FastSets;
}

/** Writes the statement of a query for a store. @throws {Problem} when it is not known what may be returned */
async function statementOf(query: Query, { tables, visibility }: Store): Promise<Written> {
  const [shown, hidden] = await Promise.all([
    readableTables(query.workspace, tables, visibility),
    'hiding' in query ? visibility.hiddenCondition(query.workspace) : undefined,
  ]);
  const asked = query.arePersons ? shown.withPersons() : shown;
  const linked = query.isLinked ? asked.withLinks(query.merges) : asked;
  const readable = 'hiding' in query && !hidden ? linked.withoutPending() : linked;
  const { sql, params } = 'statement' in query ? query.statement(readable) : query.hiding(readable, hidden?.(readable));
  return { sql, params: { ...readable.params, ...params }, fast: readable.fast };
}

/** A query of all workspaces names none. */
async function readableTables(workspace: string, tables: Tables, visibility: Visibility): Promise<Tables> {
  if (workspace === '') return tables;
  const [keptFromMs, merged = [], fast = []] = await Promise.all([
    visibility.keptFrom(workspace),
    visibility.mergedDeletions?.(workspace),
    visibility.fastSets?.(workspace),
  ]);
  const kept = keptFromMs === undefined ? tables : tables.keptFrom(keptFromMs);
  const more = [...(visibility.deletionsElsewhere?.(workspace) ?? []), ...merged];
  const shown = more.length === 0 ? kept : kept.withDeletions(more);
  return fast.length === 0 ? shown : shown.withFast(fast);
}

/** @param slot is released when the time is up or the client leaves */
async function* rowsInTime(
  query: QueryOptions & Noting,
  { reader, tables, givenUp }: Store,
  statement: Written | Promise<Written>,
  timeoutMs: number,
  slot: StatementSlot | undefined,
): RowBatches {
  const written = { ...query, ...(await statement) };
  const deadline = AbortSignal.timeout(timeoutMs + (query.graceMs ?? GRACE_MS));
  const over = query.signal ? AbortSignal.any([query.signal, deadline]) : deadline;
  // Where the server is given up, the query goes on at another one, in its slot.
  const end = givenUp ? AbortSignal.any([over, givenUp]) : over;
  // A reader that has stopped reading does not come back to release the slot.
  const release = () => slot?.release();
  over.addEventListener('abort', release);
  try {
    const watch = slot?.watch(givenUp);
    yield* reader.read({ ...requestOf(written, tables, end, timeLimit(timeoutMs)), watch });
  } catch (error) {
    throw deadline.aborted && !(error instanceof ClickHouseException) ? deadline.reason : error;
  } finally {
    over.removeEventListener('abort', release);
  }
}

function requestOf(
  query: QueryOptions & Noting & Written,
  { onSeveralServers }: Tables,
  signal: AbortSignal,
  limits: QuerySettings,
): ReadRequest {
  const { sql, workspace, kind, onText, pool = 'pages', requestId, span } = query;
  return {
    ...{ sql, params: { ...query.params, workspace } },
    ...{ queryId: queryIdOf(query), traced: span && { request: span, name: kind }, signal, onText, onSeveralServers },
    onRead: onReadOf(query),
    settings: {
      ...limits,
      ...POOL_SETTINGS[pool],
      ...(workspace === '' && ALL_WORKSPACES_SETTINGS),
      ...query.settings,
      ...(requestId && { log_comment: requestId }),
    },
  };
}

/** Returns who is told what a query has read, if it reads the text of properties: those that are fast have columns. */
function onReadOf({
  workspace,
  properties = [],
  fast,
  noteRead,
}: QueryOptions & Noting & Written): ReadRequest['onRead'] {
  const text = properties.filter((name) => !fast[0]?.names.includes(name));
  return noteRead && text.length > 0 ? (bytes) => noteRead(workspace, text, bytes) : undefined;
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
