import type { Logger } from '@sluice/shared/base/log';
import { backoff, sleep } from '@sluice/shared/base/retry';
import { isReplicated } from '@sluice/shared/config';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryConfig } from '../config.ts';
import { POSITION_TOO_OLD, RESUMABLE_MS } from '../http/http.ts';
import type { StreamMetrics } from '../metrics.ts';
import { ConnectionFailure, type QueryRunner, type Store, type Stores, type StreamStores } from '../store/store.ts';
import type { StreamListener } from './stream-listener.ts';
import {
  encodePosition,
  isAtLeast,
  isPlaceAtLeast,
  laterOf,
  type StreamId,
  type StreamPosition,
} from './stream-position.ts';
import { StreamReader } from './stream-reader.ts';
import { type Start, StreamServer } from './stream-server.ts';

/** How often each listener gets a heartbeat, in milliseconds. */
const HEARTBEAT_MS = 15_000;

/** Why a stream that was at another server cannot go on. */
export const NO_START =
  'The server that sent the position cannot be read now, and the one that is read cannot tell what was sent. Read what you may have missed from GET /events, and listen again without the position.';

const OTHER_DATA =
  'The event store does not have this position: it has other data than when the position was sent. Read what you may have missed from GET /events, and listen again without the position.';

/** By how much the number of a position may be above the clock and above the end at this replica, in milliseconds. */
const AHEAD_MS_MAX = 60_000;

export interface StreamHubOptions {
  readonly config: Pick<QueryConfig, 'STREAM_INTERVAL_MS' | 'CLICKHOUSE_REPLICATION'>;
  readonly queryRunner: QueryRunner;
  readonly stores: StreamStores;
  /** The one of them that it reads. */
  readonly store: Store;
  readonly metrics: StreamMetrics;
  readonly logger: Logger;
}

/** Where a stream begins. */
export interface Beginning {
  readonly position: StreamPosition;
  /** Until when everything was sent before, in milliseconds since 1970; 0 when that is not known. */
  readonly throughMs: number;
  /** Set when it was at another server: as in {@link Start}. */
  readonly repeatsFromMs?: number;
}

/**
 * Sends the stored events of one ClickHouse to listeners of this process. One loop reads for those that have everything so far.
 * Each round:
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
  readonly #store: PinnedStore;
  readonly #reader: StreamReader;
  /** Undefined without a file of servers. */
  readonly #server: StreamServer | undefined;
  readonly #isReplica: boolean;
  readonly #stopping = new AbortController();
  readonly #listeners = new Set<StreamListener>();
  /** The listeners that were behind, and the number of the last turn that each had. */
  readonly #turns = new WeakMap<StreamListener, number>();
  /** The number of the last turn of each workspace that was behind. */
  readonly #workspaceTurns = new Map<string, number>();
  #round = 0;
  /** Up to where the listeners that are not behind have everything. */
  #cursor: StreamPosition | undefined;
  /** The newest number of each server, while it is below the cursor. */
  #fallen: StreamPosition | undefined;
  #looking: Promise<StreamPosition> | undefined;
  #running: Promise<void> | undefined;
  #catchingUp: Promise<void> | undefined;
  /** The listeners that the second loop reads for now. */
  #served: ReadonlySet<StreamListener> = new Set();
  /** Since when rounds fail, on the clock of `performance`. */
  #failingSince: number | undefined;

  constructor(options: StreamHubOptions) {
    this.#options = options;
    const { queryRunner, store, metrics } = options;
    const { signal } = this.#stopping;
    const stores = new PinnedStore(options.stores, store);
    this.#store = stores;
    const { name, databaseId } = store;
    this.#isReplica = isReplicated(options.config);
    const isReplica = this.#isReplica;
    if (databaseId !== undefined)
      this.#server = new StreamServer({ name, databaseId, queryRunner, stores, signal, isReplica });
    this.#reader = new StreamReader({
      ...{ queryRunner, stores, signal, isReplica },
      onSent: (events) => metrics.sentEvents.inc(events),
      onProgress: this.#server && !isReplica ? (progress) => this.#server?.note(progress) : undefined,
    });
  }

  /** What it reads. */
  get store(): PinnedStore {
    return this.#store;
  }

  get listeners(): ReadonlySet<StreamListener> {
    return this.#listeners;
  }

  /** For how long nothing could be read for its listeners, in milliseconds. */
  get failingMs(): number {
    return this.#failingSince === undefined ? 0 : performance.now() - this.#failingSince;
  }

  /** Ends all streams. */
  async stop(): Promise<void> {
    for (const listener of this.leave()) listener.end('stopping');
    await this.#running;
    await this.#catchingUp;
  }

  /** Returns its listeners; from now on it sends nothing any more. */
  leave(): readonly StreamListener[] {
    this.#stopping.abort();
    const left = [...this.#listeners];
    this.#listeners.clear();
    return left;
  }

  /** Returns where the order of storage ends, or ended lately. @throws {Problem} when ClickHouse cannot be read */
  async end(): Promise<StreamPosition> {
    return this.#cursor ?? (await this.#look());
  }

  /**
   * Returns where a stream begins that was at an id, or now.
   *
   * @param end of the order of storage, as {@link end} has returned it
   * @throws {Problem} `position_lost`, or when nothing can be read
   */
  async beginning(id: StreamId | undefined, end: StreamPosition): Promise<Beginning> {
    if (!id) return { position: end, throughMs: await this.#lookUpThrough(end, 0) };
    const { position, origin } = id;
    if (this.#isReplica) {
      requireOfReplica(id, end, origin !== undefined && this.#server?.isOf(origin) === true);
      return { position, throughMs: 0 };
    }
    // Without a name it is from before there was a file of servers.
    const isOwn = origin ? this.#server?.isOf(origin) : this.#options.stores.unnamed === this.#store.name;
    const start = isOwn ? undefined : await this.#startFrom(origin?.throughMs ?? 0);
    await this.#requireKnown(start?.position ?? position, end);
    if (start) return start;
    return { position, throughMs: await this.#lookUpThrough(position, origin?.throughMs ?? 0) };
  }

  /** Replicas need none: a position of one holds at all. */
  async #lookUpThrough(position: StreamPosition, knownMs: number): Promise<number> {
    return this.#isReplica ? 0 : ((await this.#server?.lookUpThrough(position, knownMs)) ?? 0);
  }

  /** Returns where streams of other servers go on here: as {@link StreamServer.startsFrom}. @throws {Problem} */
  async startsFrom(times: readonly number[]): Promise<(throughMs: number) => Start | undefined> {
    return (await this.#server?.startsFrom(times)) ?? (() => undefined);
  }

  /** Until when everything is sent to a listener, in milliseconds since 1970. */
  throughOf({ position, throughMs }: Pick<StreamListener, 'position' | 'throughMs'>): number {
    return this.#server?.throughOf(position, throughMs) ?? 0;
  }

  /** Returns the id of a position of a listener, to which everything before a time was sent already. */
  idOf(position: StreamPosition, throughMs: number): string {
    return this.#server?.idOf(position, throughMs, Date.now()) ?? encodePosition(position, Date.now());
  }

  /** @param end of the order of storage, as {@link end} has returned it */
  add(listener: StreamListener, end: StreamPosition): void {
    this.#cursor ??= end;
    this.#listeners.add(listener);
    this.#keepRunning();
  }

  remove(listener: StreamListener): void {
    this.#listeners.delete(listener);
  }

  /** Requests that come together share one look. */
  #look(): Promise<StreamPosition> {
    this.#looking ??= this.#reader.newest().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #startFrom(throughMs: number): Promise<Start> {
    const start = (await this.startsFrom([throughMs]))(throughMs);
    if (start) return start;
    throw new Problem('position_lost', NO_START);
  }

  /** A position may be newer than the cursor: another process may have sent it. */
  async #requireKnown(after: StreamPosition, cursor: StreamPosition): Promise<void> {
    const isOfStore = after.size === cursor.size && [...after.keys()].every((shard) => cursor.has(shard));
    if (isOfStore && isAtLeast(cursor, after)) return;
    // A look that was under way may have begun before the position was sent.
    if (isOfStore && (isAtLeast(await this.#look(), after) || isAtLeast(await this.#look(), after))) return;
    throw new Problem('position_lost', OTHER_DATA);
  }

  #keepRunning(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      this.#cursor = undefined;
      this.#workspaceTurns.clear();
      // One may have come while the loop ended.
      if (this.#listeners.size > 0 && !this.#stopping.signal.aborted) this.#keepRunning();
    });
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { config, logger } = this.#options;
    const beating = setInterval(() => this.#beat(), HEARTBEAT_MS);
    let delays = backoff(config.STREAM_INTERVAL_MS, HEARTBEAT_MS);
    this.#failingSince = undefined;
    while (this.#listeners.size > 0 && !signal.aborted) {
      try {
        await this.#takeRound();
        if (this.#failingSince !== undefined) delays = backoff(config.STREAM_INTERVAL_MS, HEARTBEAT_MS);
        this.#failingSince = undefined;
        await sleep(config.STREAM_INTERVAL_MS, signal);
      } catch (error) {
        if (this.#failingSince === undefined && !signal.aborted) {
          logger.warn({ reason: (error as Error).message }, 'the stream cannot read events; retrying');
        }
        this.#failingSince ??= performance.now();
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
    const to = await this.#reader.pageEnd(from, this.#endAfter(from, await this.#reader.newest()));
    const current = this.#open().filter(
      (listener) =>
        isAtLeast(listener.position, from) && !this.#served.has(listener) && !this.#reader.isApart(listener),
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
    const end = this.#cursor;
    const isBehind = (listener: StreamListener) => end !== undefined && !isAtLeast(listener.position, end);
    const behind = this.#open().filter((listener) => isBehind(listener) && !this.#reader.isResting(listener));
    const next = this.#nextOf(behind);
    if (end === undefined || !next) return false;
    this.#round += 1;
    this.#turns.set(next, this.#round);
    this.#workspaceTurns.set(next.request.selection.workspace, this.#round);
    const { position } = next;
    const mayJoin = (listener: StreamListener) => listener !== next && !this.#reader.isApart(listener);
    const isFurther = (listener: StreamListener) => mayJoin(listener) && isAtLeast(listener.position, position);
    const served = this.#reader.isApart(next) ? [] : behind.filter(isFurther);
    this.#served = new Set([next, ...served]);
    const to = await this.#reader.pageEnd(position, end);
    await this.#reader.deliver([next, ...served], { from: position, to }, true);
    if (this.#reader.isResting(next)) {
      const { workspace } = next.request.selection;
      this.#options.logger.warn(
        { workspace },
        'the events of a stream cannot be read in time; it waits, and is read again',
      );
    }
    return next.isEnded || !isAtLeast(position, next.position);
  }

  #open(): readonly StreamListener[] {
    return [...this.#listeners].filter(({ isOpen }) => isOpen);
  }

  /**
   * Returns up to where to read. The newest number falls when the newest parts lose all of their rows: the next insert
   * has a number above it all the same. When it grows again and is still below what was read, ClickHouse counts anew; but for replicas, whose
   * writers give the numbers.
   */
  #endAfter(cursor: StreamPosition, newest: StreamPosition): StreamPosition {
    if (this.#isReplica) return laterOf(cursor, newest);
    const below = [...newest].filter(([shard, place]) => !isPlaceAtLeast(place, cursor.get(shard)));
    const isNew = below.some(([shard, place]) => {
      const fallen = this.#fallen?.get(shard);
      return fallen !== undefined && !isPlaceAtLeast(fallen, place);
    });
    this.#fallen = isNew ? undefined : new Map(below);
    if (isNew) for (const listener of this.#listeners) listener.end('position_lost');
    return isNew ? newest : laterOf(cursor, newest);
  }

  /**
   * Returns the one that has waited for the longest time, of the workspace that has; of several, the one that has the most to
   * catch up.
   */
  #nextOf(all: readonly StreamListener[]): StreamListener | undefined {
    const turn = (listener: StreamListener) => this.#turns.get(listener) ?? 0;
    const workspaceTurn = ({ request }: StreamListener) => this.#workspaceTurns.get(request.selection.workspace) ?? 0;
    const first = Math.min(...all.map(workspaceTurn));
    const listeners = all.filter((listener) => workspaceTurn(listener) === first);
    return listeners.reduce<StreamListener | undefined>((first, listener) => {
      if (first === undefined || turn(listener) < turn(first)) return listener;
      return turn(listener) === turn(first) && isAtLeast(first.position, listener.position) ? listener : first;
    }, undefined);
  }
}

/**
 * Refuses a position that no replica has sent, or that is older than the records of the order. Another replica may be further than this one, which
 * gets there.
 *
 * @param end of the order at this replica
 * @throws {Problem} `position_lost`
 */
function requireOfReplica({ position, sentAtMs }: StreamId, end: StreamPosition, isOfDatabase: boolean): void {
  const isSent = [...end].every(([shard, { block }]) => {
    const number = position.get(shard)?.block ?? 0;
    return number > 0 && number <= Math.max(block, Date.now()) + AHEAD_MS_MAX;
  });
  if (!isOfDatabase || !isSent || position.size !== end.size) throw new Problem('position_lost', OTHER_DATA);
  if (Date.now() - sentAtMs <= RESUMABLE_MS) return;
  throw new Problem('position_lost', POSITION_TOO_OLD);
}

/** One of several stores, and only as long as it has the same database and may be read. */
export class PinnedStore implements Stores {
  readonly areMirrored = false;
  readonly #stores: StreamStores;
  readonly #store: Store;

  constructor(stores: StreamStores, store: Store) {
    this.#stores = stores;
    this.#store = store;
  }

  get name(): string {
    return this.#store.name;
  }

  isSameAs({ name, databaseId }: Store): boolean {
    return name === this.name && databaseId === this.#store.databaseId;
  }

  get isReadable(): boolean {
    const store = this.#stores.readable(this.name);
    return store !== undefined && this.isSameAs(store);
  }

  async choose(failed: ReadonlySet<string>): Promise<Store> {
    const store = this.#stores.readable(this.name);
    if (store && this.isSameAs(store) && !failed.has(this.name)) return store;
    throw new ConnectionFailure(`${this.name} cannot be read now`);
  }
}
