import type { QueryConfig } from '../../config.ts';
import type { Sql, Tables } from '../../store/store.ts';
import { type AcceptedState, acceptedOf, type KeysFileState, keysFileOf } from './ingest-state.ts';
import { type ServiceMetrics, samplesOf } from './service-metrics.ts';
import {
  backupOf,
  type ClickHouseState,
  clickHouseOf,
  type ErasuresState,
  erasuresOf,
  type LagState,
  lagOf,
  type WritersState,
  writersOf,
} from './writer-state.ts';

/** What the services say about the whole deployment. */
export interface ServicesState {
  /** `null` when an ingest-api could not be read. */
  readonly accepted: AcceptedState | null;
  readonly lag: LagState | null;
  /** `null` when a writer could not be read. */
  readonly writers: WritersState | null;
  readonly clickHouse: ClickHouseState | null;
  readonly erasures: ErasuresState | null;
  /** `null` also where the writers do not know of backups. */
  readonly backup: { readonly ageSeconds: number } | null;
  readonly keysFile: KeysFileState | null;
  /** The ClickHouse servers, where there are several. */
  readonly servers: readonly ReadServer[];
  /** Why something is `null`, each as a sentence. */
  readonly missing: readonly string[];
}

type Urls = Pick<QueryConfig, 'INGEST_URLS' | 'WRITER_URL'>;

/**
 * Reads what the metrics of the services say.
 *
 * @param own returns the metrics of this service
 */
export async function readServices(
  { INGEST_URLS: ingestUrls, WRITER_URL: writerUrls }: Urls,
  metrics: ServiceMetrics,
  own: () => Promise<string>,
): Promise<ServicesState> {
  const readAll = (urls: readonly string[] = []) => Promise.all(urls.map((url) => metrics.read(url)));
  const [foundIngests, foundWriters] = await Promise.all([readAll(ingestUrls), readAll(writerUrls)]);
  const [ingests, writers] = [responding(foundIngests), responding(foundWriters)];
  const knowsIngests = ingestUrls !== undefined && ingests.length === foundIngests.length;
  const knowsWriters = writerUrls !== undefined && writers.length === foundWriters.length;
  const ofWriters = {
    lag: lagOf(writers),
    clickHouse: clickHouseOf(writers),
    erasures: erasuresOf(writers),
    backup: backupOf(writers),
  };
  const missing: string[] = [];
  if (!ingestUrls) missing.push('INGEST_URLS is not set, so query-api does not know what is accepted.');
  else if (!knowsIngests) missing.push('An ingest-api of INGEST_URLS does not respond.');
  if (!writerUrls) missing.push('WRITER_URL is not set, so query-api does not know the lag.');
  else if (!knowsWriters) missing.push('A writer of WRITER_URL does not respond.');
  if (writers.length > 0) missing.push(...unreadBy(ofWriters));
  const ownMetrics = ingestUrls || writerUrls ? await own() : '';
  return {
    accepted: knowsIngests ? acceptedOf(ingests) : null,
    ...ofWriters,
    writers: knowsWriters ? writersOf(writers) : null,
    // Whether the keys of this service are in order is for those alone who may know it of the others.
    keysFile: ingestUrls ? keysFileOf([...ingests, ownMetrics]) : null,
    // In the same way, for those who may know what the writers say.
    servers: writerUrls ? readServersOf(ownMetrics) : [],
    missing,
  };
}

function responding(texts: readonly (string | undefined)[]): string[] {
  return texts.filter((text) => text !== undefined);
}

/** Returns what the writers that respond could not read, each as a sentence. */
function unreadBy({ lag, clickHouse, erasures }: Pick<ServicesState, 'lag' | 'clickHouse' | 'erasures'>): string[] {
  return [
    ...(lag ? [] : ['The writers cannot read the lag from Kafka.']),
    ...(clickHouse ? [] : ['The writers cannot read the disks and tables of ClickHouse; their log has the reason.']),
    ...(erasures ? [] : ['The writers cannot read the pending erasures; their log has the reason.']),
  ];
}

/** How far back the dead letters of a workspace are counted, in milliseconds: rejected calls are kept for as long. */
export const DEAD_LETTERS_COUNTED_MS = 30 * 86_400_000;

/** A row of {@link deadLettersQuery}. The time is in milliseconds, 0 without a dead letter. */
export type DeadLettersRow = [waiting: number, lastDay: number, rejectedLastDay: number, newestMs: number];

/**
 * Returns the query for the dead letters of a workspace: those that wait to be replayed, those of the last day, the calls
 * among them that were rejected and wait, and the newest.
 *
 * @param fromMs those recorded before do not count, in milliseconds since 1970
 */
export function deadLettersQuery(tables: Tables, fromMs: number): Sql {
  // By the bare column, ClickHouse would aggregate in the order of the table, which has all workspaces mixed, not by the projection.
  // A newer state was recorded no earlier than an older one, so the newest of what counts is not left out.
  return {
    sql: `SELECT
  toInt64(countIf(newest.2 IS NULL)),
  toInt64(countIf(newest.1 > now64(3) - INTERVAL 1 DAY)),
  toInt64(countIf(kind = 'rejected' AND newest.2 IS NULL AND newest.1 > now64(3) - INTERVAL 1 DAY)),
  toUnixTimestamp64Milli(max(newest.1))
FROM (
  SELECT any(kind) AS kind, argMax((recorded_at, replayed_at), state_at) AS newest
  FROM ${tables.deadLetterStates}
  WHERE recorded_at >= fromUnixTimestamp64Milli({from_ms:Int64})
  GROUP BY identity(id)
)`,
    params: { from_ms: fromMs },
  };
}

/** How a ClickHouse server is, of several. */
interface ReadServer {
  readonly name: string;
  /** Whether it can be read. */
  readonly readable: boolean;
  /** How far behind Kafka it is; `null` while that is not known. */
  readonly behindSeconds: number | null;
  /** Whether requests read it. */
  readonly chosen: boolean;
}

/** Returns the servers that the metrics of query-api know. Without a file of servers there are none. */
export function readServersOf(text: string): ReadServer[] {
  const byServer = (metric: string) =>
    new Map(samplesOf(text, metric).map(({ labels, value }) => [labels['server'] ?? '', value]));
  const behind = byServer('sluice_query_server_behind_seconds');
  const chosen = byServer('sluice_query_server_chosen');
  return [...byServer('sluice_query_server_readable')].map(([name, readable]) => ({
    ...{ name, readable: readable === 1, chosen: chosen.get(name) === 1 },
    behindSeconds: behind.get(name) ?? null,
  }));
}
