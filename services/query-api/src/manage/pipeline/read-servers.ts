import { samplesOf } from './service-metrics.ts';

/** How a ClickHouse server is, of several. */
export interface ReadServer {
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
