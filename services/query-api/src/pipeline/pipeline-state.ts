import type { Sql } from '../clickhouse/sql.ts';
import type { Tables } from '../clickhouse/tables.ts';
import type { QueryConfig } from '../config.ts';
import { type ReadMetrics, valuesOf } from './service-metrics.ts';

/** What the other services say about the whole deployment. */
export interface ServicesState {
  /** Since the ingest-apis started; `null` when one of them could not be read. */
  readonly accepted: { readonly events: number; readonly rejectedCalls: number } | null;
  readonly lag: { readonly messages: number; readonly seconds: number } | null;
  /** Why something is `null`, each as a sentence. */
  readonly missing: readonly string[];
}

/** Reads what the metrics of ingest-api and writer say. */
export async function readServices(
  { INGEST_URLS: ingestUrls, WRITER_URL: writerUrl }: Pick<QueryConfig, 'INGEST_URLS' | 'WRITER_URL'>,
  readMetrics: ReadMetrics,
): Promise<ServicesState> {
  const [ingests, writer] = await Promise.all([
    Promise.all(ingestUrls?.map(readMetrics) ?? []),
    writerUrl === undefined ? undefined : readMetrics(writerUrl),
  ]);
  const missing: string[] = [];
  if (!ingestUrls) missing.push('INGEST_URLS is not set, so query-api does not know what is accepted.');
  else if (ingests.includes(undefined)) missing.push('An ingest-api of INGEST_URLS does not respond.');
  const messages = valuesOf(writer ?? '', 'sluice_writer_lag_messages');
  if (writerUrl === undefined) missing.push('WRITER_URL is not set, so query-api does not know the lag.');
  else if (writer === undefined) missing.push('The writer of WRITER_URL does not respond.');
  else if (messages.length === 0) missing.push('The writer of WRITER_URL does not know its lag yet.');
  const count = (metric: string) => sum(ingests.flatMap((text) => valuesOf(text ?? '', metric)));
  return {
    accepted:
      ingestUrls && !ingests.includes(undefined)
        ? {
            events: count('sluice_ingest_accepted_events_total'),
            rejectedCalls: count('sluice_ingest_rejected_calls_total'),
          }
        : null,
    lag:
      messages.length > 0
        ? { messages: sum(messages), seconds: Math.max(...valuesOf(writer ?? '', 'sluice_writer_lag_seconds')) }
        : null,
    missing,
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** A row of {@link deadLettersQuery}. The time is in milliseconds, 0 without a dead letter. */
export type DeadLettersRow = [waiting: number, lastDay: number, newestMs: number];

/** Returns the query for the dead letters of a workspace: those that wait to be replayed, those of the last day, the newest. */
export function deadLettersQuery(tables: Tables): Sql {
  return {
    sql: `SELECT
  toInt64(countIf(replayed_at IS NULL)),
  toInt64(countIf(recorded_at > now64(3) - INTERVAL 1 DAY)),
  toUnixTimestamp64Milli(max(recorded_at))
FROM ${tables.deadLetters}`,
    params: {},
  };
}
