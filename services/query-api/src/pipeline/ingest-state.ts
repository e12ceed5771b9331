import { samplesOf, sum, valuesOf } from './service-metrics.ts';

/** What ingest-apis say, since they started. */
export interface AcceptedState {
  readonly events: number;
  readonly rejectedCalls: number;
  /** The codes with which requests were refused, the most frequent first. */
  readonly refused: readonly { readonly code: string; readonly requests: number }[];
}

/** The keys files of the services. */
export interface KeysFileState {
  /** Whether every service can use its file. */
  readonly valid: boolean;
  /** Since the keys in force were modified, in the service whose keys are the oldest; `null`: none has read any. */
  readonly ageSeconds: number | null;
}

/** Adds up the metrics of all ingest-apis. */
export function acceptedOf(ingests: readonly string[]): AcceptedState {
  const count = (metric: string) => sum(ingests.flatMap((text) => valuesOf(text, metric)));
  const refused = new Map<string, number>();
  for (const { labels, value } of ingests.flatMap((text) => samplesOf(text, 'sluice_http_refused_requests_total'))) {
    const { code = '' } = labels;
    refused.set(code, (refused.get(code) ?? 0) + value);
  }
  return {
    events: count('sluice_ingest_accepted_events_total'),
    rejectedCalls: count('sluice_ingest_rejected_calls_total'),
    refused: [...refused]
      .map(([code, requests]) => ({ code, requests }))
      .sort((a, b) => b.requests - a.requests || (a.code < b.code ? -1 : 1)),
  };
}

/** Returns the state of the keys files that these metrics know; `null` when they know none. */
export function keysFileOf(services: readonly string[]): KeysFileState | null {
  const valid = services.flatMap((text) => valuesOf(text, 'sluice_keys_file_valid'));
  const ages = services.flatMap((text) => valuesOf(text, 'sluice_keys_file_age_seconds'));
  if (valid.length === 0) return null;
  return { valid: valid.every((one) => one === 1), ageSeconds: ages.length > 0 ? Math.max(...ages) : null };
}
