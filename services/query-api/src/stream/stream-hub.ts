import { Problem } from '@sluice/shared/http/problem';
import type { Logger } from '@sluice/shared/log';
import { backoff, sleep } from '@sluice/shared/retry';
import type { Visibility } from '../clickhouse/query.ts';
import type { QueryRunner } from '../clickhouse/query-runner.ts';
import type { QueryConfig } from '../config.ts';
import type { StreamMetrics } from '../metrics.ts';
import { type ListenRequest, STREAM_ENDS, StreamListener } from './stream-listener.ts';
import { isAtLeast, type StreamPosition } from './stream-position.ts';
import { StreamReader } from './stream-reader.ts';

/** How often each listener gets a heartbeat, in milliseconds. */
const HEARTBEAT_MS = 15_000;

/** The `Retry-After` of a refused request, in seconds. */
const RETRY_AFTER_SECONDS = 10;

export type StreamConfig = Pick<
  QueryConfig,
  'STREAM_INTERVAL_MS' | 'STREAM_LISTENERS_MAX' | 'STREAM_LISTENERS_PER_WORKSPACE'
>;

export interface StreamHubOptions {
  readonly config: StreamConfig;
  readonly queryRunner: QueryRunner;
  readonly visibility: Visibility;
  /** Returns what is missing; the order of storage needs all migrations. */
  readonly readiness: () => Promise<readonly string[]>;
  readonly metrics: StreamMetrics;
  readonly logger: Logger;
}

/**
 * Sends stored events to all listeners of this process. One loop reads for those that have everything so far. Each round:
 *
 * 1. It looks where the order of storage ends now. Usually nothing is new, and the round is over.
 * 2. One query reads what is new for the listeners that have everything before.
 *
 * A second loop reads for those that are behind, because they resume or read slowly. One after the other has its turn, and
 * the query for it also serves all that are further. It runs beside the first one: what it reads may be long.
 *
 * Without listeners there are no loops.
 */
export class StreamHub {
  readonly #options: StreamHubOptions;
  readonly #reader: StreamReader;
  readonly #stopping = new AbortController();
  readonly #listeners = new Set<StreamListener>();
  /** How many listen, or are about to, by workspace. */
  readonly #counts = new Map<string, number>();
  /** The listeners that were behind, and the number of the last turn that each had. */
  readonly #turns = new WeakMap<StreamListener, number>();
  #round = 0;
  /** Up to where the listeners that are not behind have everything. */
  #cursor: StreamPosition | undefined;
  /** The newest number, while it is below the cursor. */
  #fallen: StreamPosition | undefined;
  #looking: Promise<StreamPosition> | undefined;
  #running: Promise<void> | undefined;
  #catchingUp: Promise<void> | undefined;
  /** The listeners that the second loop reads for now. */
  #served: ReadonlySet<StreamListener> = new Set();
  #isMigrated = false;

  constructor(options: StreamHubOptions) {
    this.#options = options;
    const { queryRunner, visibility, metrics } = options;
    const { signal } = this.#stopping;
    const onSent = (events: number) => metrics.sentEvents.inc(events);
    this.#reader = new StreamReader({ queryRunner, visibility, signal, onSent });
    for (const reason of STREAM_ENDS) metrics.endedStreams.inc({ reason }, 0);
    metrics.countListeners(() => this.#listeners.size);
  }

  /** Ends all streams. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const listener of this.#listeners) listener.end('stopping');
    await this.#running;
    await this.#catchingUp;
  }

  /**
   * Adds a listener, whose stream begins after a position, or now.
   *
   * @throws {Problem} `too_many_listeners`, `position_lost`, `store_unavailable`, `overloaded`
   */
  async open(request: ListenRequest, after?: StreamPosition): Promise<StreamListener> {
    const { workspace } = request.selection;
    this.#reserve(workspace);
    try {
      await this.#requireMigrations();
      const cursor = this.#cursor ?? (await this.#look());
      if (after) await this.#requireKnown(after, cursor);
      if (this.#stopping.signal.aborted) throw overloaded('The service is stopping; try again.');
      const listener = new StreamListener(request, after ?? cursor);
      this.#add(listener, cursor);
      return listener;
    } catch (error) {
      this.#release(workspace);
      throw error;
    }
  }

  #reserve(workspace: string): void {
    const { STREAM_LISTENERS_PER_WORKSPACE: ofWorkspaceMax, STREAM_LISTENERS_MAX: max } = this.#options.config;
    const ofWorkspace = this.#counts.get(workspace) ?? 0;
    if (ofWorkspace >= ofWorkspaceMax) {
      const detail = `${ofWorkspaceMax} clients listen to this workspace already; close one, or try again later.`;
      throw new Problem('too_many_listeners', detail, { retryAfter: RETRY_AFTER_SECONDS });
    }
    const all = [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
    if (all >= max) throw overloaded('Too many clients listen already; try again later.');
    this.#counts.set(workspace, ofWorkspace + 1);
  }

  #release(workspace: string): void {
    const count = (this.#counts.get(workspace) ?? 0) - 1;
    if (count > 0) this.#counts.set(workspace, count);
    else this.#counts.delete(workspace);
  }

  /** Without the last migration merges change the order of storage. */
  async #requireMigrations(): Promise<void> {
    this.#isMigrated ||= (await this.#options.readiness()).length === 0;
    if (!this.#isMigrated) {
      const detail = 'The event store is not ready; try again.';
      throw new Problem('store_unavailable', detail, { retryAfter: RETRY_AFTER_SECONDS });
    }
  }

  /** Requests that come together share one look. */
  #look(): Promise<StreamPosition> {
    this.#looking ??= this.#reader.newest().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** A position may be newer than the cursor: another process may have sent it. */
  async #requireKnown(after: StreamPosition, cursor: StreamPosition): Promise<void> {
    const isOfStore = after.size === cursor.size && [...after.keys()].every((shard) => cursor.has(shard));
    if (isOfStore && isAtLeast(cursor, after)) return;
    // A look that was under way may have begun before the position was sent.
    if (isOfStore && (isAtLeast(await this.#look(), after) || isAtLeast(await this.#look(), after))) return;
    throw new Problem(
      'position_lost',
      'The event store does not have this position: it has other data than when the position was sent. Read what you may have missed from GET /events, and listen again without the position.',
    );
  }

  #add(listener: StreamListener, cursor: StreamPosition): void {
    const { workspace } = listener.request.selection;
    this.#cursor ??= cursor;
    this.#listeners.add(listener);
    listener.onceEnded((reason) => {
      this.#listeners.delete(listener);
      this.#release(workspace);
      this.#options.metrics.endedStreams.inc({ reason });
    });
    this.#keepRunning();
  }

  #keepRunning(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      this.#cursor = undefined;
      // One may have come while the loop ended.
      if (this.#listeners.size > 0 && !this.#stopping.signal.aborted) this.#keepRunning();
    });
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { config, logger } = this.#options;
    const beating = setInterval(() => this.#beat(), HEARTBEAT_MS);
    let delays = backoff(config.STREAM_INTERVAL_MS, HEARTBEAT_MS);
    let isFailing = false;
    while (this.#listeners.size > 0 && !signal.aborted) {
      try {
        await this.#takeRound();
        if (isFailing) delays = backoff(config.STREAM_INTERVAL_MS, HEARTBEAT_MS);
        isFailing = false;
        await sleep(config.STREAM_INTERVAL_MS, signal);
      } catch (error) {
        if (!isFailing && !signal.aborted) {
          logger.warn({ reason: (error as Error).message }, 'the stream cannot read events; retrying');
        }
        isFailing = true;
        await sleep(delays.next().value, signal);
      }
    }
    clearInterval(beating);
  }

  #beat(): void {
    for (const listener of this.#listeners) listener.beat();
  }

  async #takeRound(): Promise<void> {
    for (const listener of this.#listeners) {
      if (!listener.request.isAllowed()) listener.end('unauthorized');
      listener.refresh();
    }
    const from = this.#cursor ?? (await this.#look());
    const to = this.#endAfter(from, await this.#reader.newest());
    const current = this.#open().filter(
      (listener) => isAtLeast(listener.position, from) && !this.#served.has(listener),
    );
    if (!isAtLeast(from, to) && current.length > 0) await this.#reader.deliver(current, { from, to });
    this.#cursor = to;
    this.#catchingUp ??= this.#catchUp().finally(() => {
      this.#catchingUp = undefined;
    });
  }

  /** Serves those that are behind, until none can be sent more. The next round begins it again, also when it failed. */
  async #catchUp(): Promise<void> {
    const { signal } = this.#stopping;
    try {
      while (!signal.aborted && (await this.#takeTurn()));
    } catch (error) {
      if (!signal.aborted) {
        const reason = (error as Error).message;
        this.#options.logger.warn({ reason }, 'the stream cannot read older events; retrying');
      }
    } finally {
      this.#served = new Set();
    }
  }

  /** Returns whether a listener that is behind got further, and could be sent more at once. */
  async #takeTurn(): Promise<boolean> {
    const to = this.#cursor;
    const behind = to === undefined ? [] : this.#open().filter(({ position }) => !isAtLeast(position, to));
    const next = this.#nextOf(behind);
    if (to === undefined || !next) return false;
    this.#round += 1;
    this.#turns.set(next, this.#round);
    const { position } = next;
    const served = behind.filter((listener) => listener !== next && isAtLeast(listener.position, position));
    this.#served = new Set([next, ...served]);
    await this.#reader.deliver([next, ...served], { from: position, to });
    return next.isEnded || !isAtLeast(position, next.position);
  }

  #open(): readonly StreamListener[] {
    return [...this.#listeners].filter(({ isOpen }) => isOpen);
  }

  /**
   * Returns up to where to read. The newest number falls when the newest parts lose all of their rows: the next insert
   * has a number above it all the same. When it grows again and is still below what was read, ClickHouse counts anew.
   */
  #endAfter(cursor: StreamPosition, newest: StreamPosition): StreamPosition {
    const isBelow = !isAtLeast(newest, cursor);
    const isNew = isBelow && this.#fallen !== undefined && !isAtLeast(this.#fallen, newest);
    this.#fallen = isBelow && !isNew ? newest : undefined;
    if (isNew) for (const listener of this.#listeners) listener.end('position_lost');
    return isBelow && !isNew ? cursor : newest;
  }

  /** Returns the one that has waited for the longest time; of several, the one that has the most to catch up. */
  #nextOf(listeners: readonly StreamListener[]): StreamListener | undefined {
    const turn = (listener: StreamListener) => this.#turns.get(listener) ?? 0;
    return listeners.reduce<StreamListener | undefined>((first, listener) => {
      if (first === undefined || turn(listener) < turn(first)) return listener;
      return turn(listener) === turn(first) && isAtLeast(first.position, listener.position) ? listener : first;
    }, undefined);
  }
}

function overloaded(detail: string): Problem {
  return new Problem('overloaded', detail, { retryAfter: RETRY_AFTER_SECONDS });
}
