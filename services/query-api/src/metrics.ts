import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** What a query is for. */
export type QueryKind =
  | 'events_page'
  | 'events_count'
  | 'events_export'
  | 'event_sizes'
  | 'export_part'
  | 'pending_deletions'
  | 'event_retention'
  | 'fast_properties'
  | 'links_known'
  | 'identity_default'
  | 'owners'
  | 'identities'
  | 'server_state'
  | 'entity_candidates'
  | 'entities_page'
  | 'entity_deletions'
  | 'entity_properties'
  | 'entity_times'
  | 'memberships_page'
  | 'membership_times'
  | 'stream_newest'
  | 'stream_events'
  | 'stream_progress'
  | 'dead_letters'
  | 'dead_letters_page'
  | 'audits'
  | 'series'
  | 'funnel'
  | 'segment_size'
  | 'retention'
  | 'event_names'
  | 'event_sample'
  | 'activity'
  | 'overview'
  | 'sql'
  | 'webhook_replay'
  | 'log_time';

/** The slots that queries run in: reports never keep pages waiting, and exports, which take long, neither of them. */
export type QueryPool = 'pages' | 'reports' | 'exports';

/** The slots of requests that do more than queries (see request-slots.ts). */
export type RequestPool = 'documents' | 'revocations' | 'webhooks' | 'forwarded';

/** All pools of slots: besides those of queries, that of responses with users and organizations, and those of requests. */
export type SlotPool = QueryPool | 'entities' | RequestPool;

/** How a query ended. `cancelled`: the client went away. `invalid`: the SQL of the client has an error, or is not allowed. */
export type QueryOutcome = 'ok' | 'too_expensive' | 'overloaded' | 'unavailable' | 'cancelled' | 'invalid' | 'failed';

/** How a wait for a query slot ended. */
export type WaitOutcome = 'admitted' | 'cancelled' | 'full' | 'timed_out' | 'closed';

export interface QueryCounts {
  readonly running: number;
  readonly waiting: number;
}

/**
 * The metrics of queries, besides those that every service has. No label names a workspace: there may be any number of
 * them.
 */
export class QueryMetrics {
  readonly queryDurationSeconds: Histogram<'kind' | 'outcome'>;
  readonly queryWaitSeconds: Histogram<'pool' | 'outcome'>;
  readonly #counts = new Map<SlotPool, () => QueryCounts>();
  #outliving = () => 0;

  /** Declares them in a registry. */
  constructor(registry: Registry) {
    const counts = this.#counts;
    const registers = [registry];
    new Gauge({
      name: 'sluice_queries',
      help: 'Queries that run and that wait for a slot, by pool.',
      labelNames: ['pool', 'state'],
      registers,
      collect() {
        for (const [pool, read] of counts) {
          for (const [state, count] of Object.entries(read())) this.set({ pool, state }, count);
        }
      },
    });
    const outliving = () => this.#outliving();
    new Gauge({
      name: 'sluice_queries_outliving',
      help: 'Queries that ClickHouse still runs two seconds after they were given up; each keeps its slot.',
      registers,
      collect() {
        this.set(outliving());
      },
    });
    this.queryDurationSeconds = new Histogram({
      name: 'sluice_query_duration_seconds',
      help: 'Time from a query to the end of its result, with its wait for a slot, by kind and outcome.',
      labelNames: ['kind', 'outcome'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    });
    this.queryWaitSeconds = new Histogram({
      name: 'sluice_query_wait_seconds',
      help: 'Time that queries waited for a slot, by pool and outcome of the wait.',
      labelNames: ['pool', 'outcome'],
      buckets: [0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10],
      registers,
    });
  }

  /** From now on the gauge of queries reads its values of a pool here. */
  countQueries(pool: SlotPool, read: () => QueryCounts): void {
    this.#counts.set(pool, read);
  }

  /** From now on the gauge of queries that outlive their answer reads its value here. */
  countOutliving(read: () => number): void {
    this.#outliving = read;
  }
}

/**
 * Declares the metrics of the memory that requests hold.
 *
 * @param budgetBytes what all of them may hold together
 * @param read returns what they hold now
 */
export function declareMemoryMetrics(registry: Registry, budgetBytes: number, read: () => number): void {
  const registers = [registry];
  const budget = new Gauge({
    name: 'sluice_query_memory_budget_bytes',
    help: 'Memory that all requests under way may reserve together.',
    registers,
  });
  budget.set(budgetBytes);
  new Gauge({
    name: 'sluice_query_reserved_bytes',
    help: 'Memory that requests under way have reserved.',
    registers,
    collect() {
      this.set(read());
    },
  });
}

/** The metrics of `GET /events/stream`. */
export class StreamMetrics {
  readonly sentEvents: Counter;
  readonly endedStreams: Counter<'reason'>;
  readonly movedStreams: Counter;
  #readListeners = () => 0;

  /** Declares them in a registry. */
  constructor(registry: Registry) {
    const registers = [registry];
    const readListeners = () => this.#readListeners();
    new Gauge({
      name: 'sluice_stream_listeners',
      help: 'Clients that listen to GET /events/stream.',
      registers,
      collect() {
        this.set(readListeners());
      },
    });
    this.sentEvents = new Counter({
      name: 'sluice_stream_events_total',
      help: 'Events sent to listeners; an event counts once for each.',
      registers,
    });
    this.endedStreams = new Counter({
      name: 'sluice_stream_ended_total',
      help: 'Streams that ended, by reason: the client left, read nothing for a minute, lost its key; its query failed, its position is lost, the service stopped.',
      labelNames: ['reason'],
      registers,
    });
    this.movedStreams = new Counter({
      name: 'sluice_stream_moves_total',
      help: 'Streams that went on at another ClickHouse server, and may have repeated events.',
      registers,
    });
  }

  /** From now on the gauge of listeners reads its value here. */
  countListeners(read: () => number): void {
    this.#readListeners = read;
  }
}
