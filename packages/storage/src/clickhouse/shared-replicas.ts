import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { STATEMENTS } from './statements.ts';

export interface SharedReplicasOptions {
  /** Its address leads each statement to any replica. */
  readonly client: ClickHouseClient;
  /** How the query ids of the batches of all writers of the group begin. */
  readonly groupPrefix: string;
  readonly statementTimeoutMs: number;
}

/** Which statements are meant, by the beginnings of their query ids. */
export interface MeantStatements {
  readonly prefix: string;
  /** Those that are not meant. Default: none. */
  readonly except?: string;
}

/** How often it is looked which replicas there are, and whether statements have ended, in milliseconds. */
const WATCH_MS = 10_000;
const POLL_MS = 500;

/**
 * How long Keeper keeps a session without a sign of life at least, and how long a replica waits for a response of Keeper, in milliseconds:
 * ClickHouse's defaults.
 */
const SESSION_MS_MIN = 30_000;
const OPERATION_MS = 10_000;

/** What has to be known about replicas before what others have sent counts as over. */
interface Look {
  /** Whether one of the statements runs at a replica. */
  readonly isRunning: boolean;
  /** Those at which statements could store before it, also those that have left lately. */
  readonly recorded: readonly string[];
  /** Whether all are there at which one could be running. */
  readonly areAllThere: boolean;
}

interface Waiting {
  readonly meant: MeantStatements;
  /** When it was recorded what refuses those that begin later, or when they know what they have to, on the clock of `performance`. */
  readonly sinceMs: number;
  readonly signal: AbortSignal | undefined;
  /** Ends them. Default: nobody does, and only those are meant that began before then. */
  readonly end?: () => Promise<void>;
}

/**
 * Replicas that share the rows of tables behind one address, as in ClickHouse Cloud: any statement may reach any of them, and finds all that was
 * committed before. So nothing has to be brought level. What is left is to know that nothing goes on which others have sent.
 *
 * A statement that stores looks first whether it still may: it is refused where a newer epoch is recorded, where its attempt is recorded as ended,
 * and at a replica that is not recorded. So one that begins later does no harm, and others are at a recorded replica. They are over when
 *
 * - none runs at any replica of the cluster; those that do are ended. A replica of the cluster that does not answer keeps that from succeeding;
 * - then each that was recorded before has a session of Keeper that is older than a session outlasts its connection: what a statement has sent in one before, and
 *   then failed, is committed by then or never will be;
 * - all recorded replicas are there. One that has left cannot be asked: it is recorded as gone, which refuses what begins there, and what it was
 *   running is over after the time limit of a statement, and the times of a request to Keeper and of a session.
 *
 * After that time everything is over in any case, but for what runs at a replica that answers.
 */
export class SharedReplicas {
  readonly name = 'shared replicas';
  readonly #options: SharedReplicasOptions;
  readonly #stopping = new AbortController();
  #sessionMs = SESSION_MS_MIN;
  #running: Promise<void> | undefined;

  constructor(options: SharedReplicasOptions) {
    this.#options = options;
  }

  /** Begins to record new replicas, so that batches are not refused there for long. */
  start(): void {
    this.#running ??= this.#watch();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /**
   * Ends statements at all replicas, and returns when none of them can store anything any more. Before, it has to be recorded what refuses those
   * that begin later.
   *
   * @param fencedAtMs when that was recorded, on the clock of `performance`. Default: just now
   * @throws {Error} when the signal aborts, or statements do not end
   * @throws ClickHouse's errors, also where one of the replicas does not answer; the call may be repeated
   */
  async end(meant: MeantStatements, signal?: AbortSignal, fencedAtMs = performance.now()): Promise<void> {
    await this.#waitUntilOver({ meant, sinceMs: fencedAtMs, signal, end: () => this.#kill(meant, signal) });
  }

  /**
   * Makes sure that no batch goes on which may not know the deletions that are stored by now: a statement that begins later finds them.
   *
   * @param delayMs how long a batch may take between its statements
   * @returns when it began, by ClickHouse's clock, in milliseconds: deletions that were pending by then are settled for good
   * @throws {Error} when the signal aborts, or older statements do not end
   * @throws ClickHouse's errors, also where one of the replicas does not answer
   */
  async settle(delayMs: number, signal: AbortSignal): Promise<number> {
    const [row] = await this.#read<{ nowMs: number }>('read-time');
    if (!row) throw new Error('ClickHouse has returned no time');
    const knownAt = performance.now();
    await sleep(delayMs, signal);
    const meant = { prefix: this.#options.groupPrefix };
    await this.#waitUntilOver({ meant, sinceMs: knownAt, signal });
    return row.nowMs;
  }

  async #waitUntilOver({ meant, sinceMs, signal, end }: Waiting): Promise<void> {
    const beganAt = performance.now();
    let recorded: readonly string[] | undefined;
    for (;;) {
      signal?.throwIfAborted();
      const look = await this.#look(meant, end ? 0 : performance.now() - sinceMs, signal);
      // What is recorded later refuses what began before.
      recorded ??= look.recorded;
      // In this order: what ends in between, and fails, may have lost the session of its replica.
      const haveOldSessions = await this.#haveOldSessions(recorded, signal);
      const now = performance.now();
      const isLate = now - sinceMs > this.#strayMs;
      if (!look.isRunning && (isLate || (look.areAllThere && haveOldSessions))) return;
      if (look.isRunning && now - beganAt > this.#strayMs)
        throw new Error('statements that were to end go on at a replica of ClickHouse');
      if (look.isRunning) await end?.();
      await sleep(POLL_MS, signal);
    }
  }

  /**
   * For how long a replica that cannot be asked may go on with what it was running, in milliseconds. ClickHouse looks at a statement's limit
   * of time between blocks, so it counts twice: what comes after the last one is not limited.
   */
  get #strayMs(): number {
    return 2 * this.#options.statementTimeoutMs + OPERATION_MS + this.#sessionMs;
  }

  async #kill({ prefix, except = '' }: MeantStatements, signal: AbortSignal | undefined): Promise<void> {
    await this.#options.client.command({
      query: STATEMENTS['end-statements-everywhere'].sql,
      query_params: { prefix, except },
      ...(signal && { abort_signal: signal }),
      // A replica that does not answer is an error before the client gives up.
      clickhouse_settings: {
        distributed_ddl_task_timeout: String(Math.ceil(this.#options.statementTimeoutMs / 1_000)),
      },
    });
  }

  /** Looks which replicas there are, with what they run, and records those that have come and gone. */
  async #look({ prefix, except = '' }: MeantStatements, ageMs: number, signal: AbortSignal | undefined): Promise<Look> {
    // First: one that another writer records after this has nothing of what is meant, and need not be in the list yet.
    const recorded = await this.#read<{ replica: string; isGone: boolean; ageMs: number }>('read-replicas', {}, signal);
    const parameters = { prefix, except, ageMs: Math.floor(ageMs) };
    type Found = { readonly replica: string; readonly running: number };
    const there = await this.#read<Found>('find-statements-everywhere', parameters, signal);
    const names = new Set(there.map(({ replica }) => replica));
    const open = new Set(recorded.filter(({ isGone }) => !isGone).map(({ replica }) => replica));
    const left = [...open].filter((replica) => !names.has(replica));
    const come = [...names].filter((replica) => !open.has(replica));
    if (left.length > 0) await this.#record(left, true, signal);
    if (come.length > 0) await this.#record(come, false, signal);
    // What began there before that was recorded is over by then: recording it takes a statement, too.
    const isOver = (sinceMs: number) => sinceMs > this.#strayMs + this.#options.statementTimeoutMs;
    const strays = recorded.filter(({ isGone, ageMs: sinceMs }) => isGone && !isOver(sinceMs));
    const isRunning = there.some(({ running }) => running > 0);
    const areAllThere = left.length === 0 && strays.length === 0;
    // A stray may come back, and have lost its session meanwhile.
    return { isRunning, recorded: [...open, ...strays.map(({ replica }) => replica)], areAllThere };
  }

  /** Whether the session of each of these replicas is older than one outlasts its connection. */
  async #haveOldSessions(replicas: readonly string[], signal: AbortSignal | undefined): Promise<boolean> {
    type Session = { readonly replica: string; readonly ageMs: number; readonly timeoutMs: number };
    // Where replicas do not say it, as in older versions, nobody's is: the time passes in which all is over.
    const sessions = await this.#read<Session>('read-sessions', {}, signal).catch((): Session[] => []);
    this.#sessionMs = Math.max(this.#sessionMs, ...sessions.map(({ timeoutMs }) => timeoutMs));
    const old = new Set(sessions.filter(({ ageMs, timeoutMs }) => ageMs > timeoutMs).map(({ replica }) => replica));
    return replicas.every((replica) => old.has(replica));
  }

  async #record(replicas: readonly string[], isGone: boolean, signal: AbortSignal | undefined): Promise<void> {
    const { sql } = STATEMENTS['record-replicas'];
    const query_params = { replicas, isGone };
    await this.#options.client.command({ query: sql, query_params, ...(signal && { abort_signal: signal }) });
  }

  async #read<Row>(
    name: keyof typeof STATEMENTS,
    query_params: Readonly<Record<string, unknown>> = {},
    signal?: AbortSignal,
  ): Promise<Row[]> {
    const query = { query: STATEMENTS[name].sql, query_params: { ...query_params }, format: 'JSONEachRow' } as const;
    const result = await this.#options.client.query({ ...query, ...(signal && { abort_signal: signal }) });
    return await result.json<Row>();
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      // Whoever ends statements looks again.
      await this.#look({ prefix: this.#options.groupPrefix }, 0, signal).catch(() => undefined);
      await sleep(WATCH_MS, signal);
    }
  }
}
