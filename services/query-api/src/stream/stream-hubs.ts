import type { Logger } from '@sluice/shared/base/log';
import { isReplicated, isShared } from '@sluice/shared/config';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryConfig } from '../config.ts';
import type { StreamMetrics } from '../metrics.ts';
import {
  type Identity,
  outcomeOf,
  type QueryRunner,
  queryProblem,
  type Store,
  type StreamStores,
} from '../store/store.ts';
import { type Beginning, NO_START, StreamHub } from './stream-hub.ts';
import { type ListenRequest, type Moved, STREAM_ENDS, StreamListener } from './stream-listener.ts';
import { isAtLeast, type StreamId, type StreamPosition } from './stream-position.ts';
import type { Start } from './stream-server.ts';

/** Nobody knows which numbers of blocks may still come where replicas share the rows. */
const NO_ORDER = 'There is no stream of events where replicas share the rows of tables. Read them from GET /events.';

/** How often it is looked whether streams have to go on at another server, in milliseconds. */
const LOOK_MS = 500;

/** How long a server that answers polls may fail to answer the queries of its streams, in milliseconds. */
const FAILING_MS_MAX = 10_000;

export interface StreamHubsOptions {
  readonly config: PlacesConfig & Pick<QueryConfig, 'STREAM_INTERVAL_MS' | 'CLICKHOUSE_REPLICATION'>;
  readonly queryRunner: QueryRunner;
  readonly stores: StreamStores;
  /** Returns what is missing; the order of storage needs all migrations. */
  readonly readiness: () => Promise<readonly string[]>;
  readonly metrics: StreamMetrics;
  readonly logger: Logger;
}

/**
 * All streams of this process, each at a hub of the ClickHouse server that it reads; without a file of servers there is one hub.
 * A stream stays at its server. It goes on at another one when its own cannot be read any more, or is too far behind.
 */
export class StreamHubs {
  readonly #options: StreamHubsOptions;
  readonly #places: ListenerPlaces;
  readonly #stopping = new AbortController();
  readonly #hubs = new Set<StreamHub>();
  /** The hubs whose listeners go on at another one. */
  readonly #moving = new Map<StreamHub, Promise<void>>();
  /** Those of them whose listeners could not go on there yet. */
  readonly #stuck = new WeakSet<StreamHub>();
  #timer: NodeJS.Timeout | undefined;
  #isMigrated = false;

  constructor(options: StreamHubsOptions) {
    this.#options = options;
    this.#places = new ListenerPlaces(options.config);
    const { metrics } = options;
    for (const reason of STREAM_ENDS) metrics.endedStreams.inc({ reason }, 0);
    metrics.countListeners(() => {
      const listeners = [...this.#hubs].flatMap((hub) => [...hub.listeners]);
      return listeners.filter(({ request }) => !request.isInternal).length;
    });
  }

  /** Ends all streams. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#timer);
    await Promise.all([...this.#hubs].map((hub) => hub.stop()));
    await Promise.all(this.#moving.values());
  }

  /**
   * Adds a listener, whose stream begins after an id, or now.
   *
   * @throws {Problem} `stream_not_available`, `too_many_listeners`, `position_lost`, `store_unavailable`, `overloaded`
   */
  async open(request: ListenRequest, after?: StreamId): Promise<StreamListener> {
    if (isShared(this.#options.config)) throw new Problem('stream_not_available', NO_ORDER);
    const { isInternal = false, selection } = request;
    const free = isInternal ? () => undefined : this.#places.take(selection.workspace);
    try {
      await this.#requireMigrations();
      const listener = await this.#openAnywhere(request, after);
      listener.onceEnded((reason) => {
        for (const hub of this.#hubs) hub.remove(listener);
        free();
        if (!isInternal) this.#options.metrics.endedStreams.inc({ reason });
      });
      return listener;
    } catch (error) {
      free();
      throw error;
    }
  }

  /** Returns what a stream sees that does not say it, as it begins. @throws {Problem} `store_unavailable`, `overloaded` */
  async defaultIdentity(workspace: string): Promise<Identity> {
    return await this.#options.queryRunner.defaultIdentities.of(workspace);
  }

  /** Without the last migration merges change the order of storage. */
  async #requireMigrations(): Promise<void> {
    this.#isMigrated ||= (await this.#options.readiness()).length === 0;
    if (!this.#isMigrated) {
      const detail = 'The event store is not ready; try again.';
      throw new Problem('store_unavailable', detail, { retryAfter: RETRY_AFTER_SECONDS });
    }
  }

  /** Opens a stream at the server of its id if that can be read, otherwise at the one that requests read. */
  async #openAnywhere(request: ListenRequest, after: StreamId | undefined): Promise<StreamListener> {
    const { stores } = this.#options;
    const from = after && (after.origin ? after.origin.server : stores.unnamed);
    const failed = new Set<string>();
    for (let failure: unknown; ; ) {
      const store = await stores.choose(failed, from).catch((error) => {
        throw failure ?? (error instanceof Problem ? error : queryProblem(outcomeOf(error), error));
      });
      const hub = this.#hubOf(store);
      try {
        const end = await hub.end();
        const beginning = await hub.beginning(after, end);
        if (this.#stopping.signal.aborted) throw stopping();
        if (this.#hubs.has(hub) && !this.#moving.has(hub))
          return this.#listen(request, hub, { ...beginning, end, from });
      } catch (error) {
        if (this.#stopping.signal.aborted || !isUnavailable(error)) throw error;
        failure = error;
        failed.add(store.name);
      }
      await this.#moving.get(hub);
    }
  }

  #listen(
    request: ListenRequest,
    hub: StreamHub,
    {
      end,
      from = '',
      repeatsFromMs,
      ...place
    }: Beginning & { readonly end: StreamPosition; readonly from?: string | undefined },
  ): StreamListener {
    const listener = new StreamListener(request, { ...place, source: hub });
    if (repeatsFromMs !== undefined) {
      listener.tell(movedOf(from, hub.store.name, repeatsFromMs));
      this.#options.metrics.movedStreams.inc();
    }
    hub.add(listener, end);
    // Without a file of servers there is no other one.
    if (hub.store.name !== '') this.#timer ??= setInterval(() => this.#look(), LOOK_MS);
    return listener;
  }

  #hubOf(store: Store): StreamHub {
    const known = [...this.#hubs].find((hub) => hub.store.isSameAs(store) && !this.#moving.has(hub));
    if (known) return known;
    const hub = new StreamHub({ ...this.#options, store });
    this.#hubs.add(hub);
    return hub;
  }

  /** Looks for hubs whose servers are not to be read any more. */
  #look(): void {
    for (const hub of this.#hubs) {
      const stays = hub.store.isReadable && hub.failingMs <= FAILING_MS_MAX;
      if (stays || this.#moving.has(hub)) continue;
      if (hub.listeners.size === 0) this.#hubs.delete(hub);
      else this.#moving.set(hub, this.#tryToMove(hub));
    }
    if ([...this.#hubs].some(({ listeners }) => listeners.size > 0)) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #tryToMove(hub: StreamHub): Promise<void> {
    try {
      await this.#move(hub);
    } catch (error) {
      if (this.#stopping.signal.aborted || this.#stuck.has(hub)) return;
      this.#stuck.add(hub);
      const { name: from } = hub.store;
      const { message: reason } = error as Error;
      this.#options.logger.warn({ from, reason }, 'streams cannot go on at another server yet; retrying');
    } finally {
      this.#moving.delete(hub);
    }
  }

  /** Where no other server can be read, listeners stay and wait. @throws {Problem} when the other one fails */
  async #move(hub: StreamHub): Promise<void> {
    const { name } = hub.store;
    const failed = new Set(hub.failingMs > FAILING_MS_MAX ? [name] : []);
    const store = await this.#options.stores.choose(failed, name).catch(() => undefined);
    if (!store || hub.store.isSameAs(store)) return;
    const next = this.#hubOf(store);
    const end = await next.end();
    // Replicas have the same order: nothing comes again.
    const startFrom = isReplicated(this.#options.config)
      ? undefined
      : await next.startsFrom([...hub.listeners].map((listener) => hub.throughOf(listener)));
    // It may have become one that is not read any more itself.
    if (this.#hubs.has(next) && !this.#moving.has(next)) this.#exchange(hub, next, end, startFrom);
  }

  /** @param startFrom undefined: the position of each holds there as well */
  #exchange(
    hub: StreamHub,
    next: StreamHub,
    end: StreamPosition,
    startFrom: ((throughMs: number) => Start | undefined) | undefined,
  ) {
    const { metrics, logger } = this.#options;
    const [from, to] = [hub.store.name, next.store.name];
    const listeners = hub.leave();
    this.#hubs.delete(hub);
    for (const listener of listeners) {
      const start = startFrom?.(hub.throughOf(listener));
      if (startFrom && !(start && isAtLeast(end, start.position))) {
        listener.fail(new Problem('position_lost', NO_START));
        continue;
      }
      if (start) listener.move({ ...start, source: next }, movedOf(from, to, start.repeatsFromMs));
      else listener.stayAt({ source: next, position: listener.position, throughMs: listener.throughMs });
      next.add(listener, end);
      metrics.movedStreams.inc();
    }
    logger.info({ from, to, streams: listeners.length }, 'streams go on at another ClickHouse server');
  }
}

function movedOf(from: string, to: string, repeatsFromMs: number): Moved {
  return { from, to, since: new Date(repeatsFromMs).toISOString() };
}

function isUnavailable(error: unknown): boolean {
  return error instanceof Problem && error.code === 'store_unavailable';
}

function stopping(): Problem {
  return new Problem('overloaded', 'The service is stopping; try again.', { retryAfter: RETRY_AFTER_SECONDS });
}

/** The `Retry-After` of a client that is not let in, in seconds. */
export const RETRY_AFTER_SECONDS = 10;

export type PlacesConfig = Pick<QueryConfig, 'STREAM_LISTENERS_MAX' | 'STREAM_LISTENERS_PER_WORKSPACE'>;

/** How many clients may listen at a time, of a workspace and of all. */
export class ListenerPlaces {
  readonly #config: PlacesConfig;
  /** How many listen, or are about to, by workspace. */
  readonly #counts = new Map<string, number>();

  constructor(config: PlacesConfig) {
    this.#config = config;
  }

  /**
   * Takes a place, and returns the function that frees it.
   *
   * @throws {Problem} `too_many_listeners`, `overloaded`
   */
  take(workspace: string): () => void {
    const { STREAM_LISTENERS_PER_WORKSPACE: ofWorkspaceMax, STREAM_LISTENERS_MAX: max } = this.#config;
    const ofWorkspace = this.#counts.get(workspace) ?? 0;
    if (ofWorkspace >= ofWorkspaceMax) {
      const detail = `${ofWorkspaceMax} clients listen to this workspace already; close one, or try again later.`;
      throw new Problem('too_many_listeners', detail, { retryAfter: RETRY_AFTER_SECONDS });
    }
    const all = [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
    if (all >= max) {
      const detail = 'Too many clients listen already; try again later.';
      throw new Problem('overloaded', detail, { retryAfter: RETRY_AFTER_SECONDS });
    }
    this.#counts.set(workspace, ofWorkspace + 1);
    return () => this.#free(workspace);
  }

  #free(workspace: string): void {
    const count = (this.#counts.get(workspace) ?? 0) - 1;
    if (count > 0) this.#counts.set(workspace, count);
    else this.#counts.delete(workspace);
  }
}
