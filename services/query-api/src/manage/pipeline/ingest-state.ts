import { type MetricSample, samplesOf, sum, valuesOf } from './service-metrics.ts';

/** What ingest-apis say, since they started. */
export interface AcceptedState {
  readonly events: number;
  readonly rejectedCalls: number;
  /** The client libraries that have sent calls, those with the most rejected calls first. */
  readonly clients: readonly ClientCalls[];
  /** The codes with which requests were refused, the most frequent first. */
  readonly refused: readonly { readonly code: string; readonly requests: number }[];
}

/** What became of the calls of a client library. */
export interface ClientCalls {
  /** Its name; `other` for all that are not known. */
  readonly client: string;
  /** How many were taken, and how many were rejected. */
  readonly calls: number;
  readonly rejectedCalls: number;
  /** Why they were rejected, the most frequent reason first. */
  readonly reasons: readonly { readonly reason: string; readonly calls: number }[];
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
  const refused = sumsBy('code', seriesOf(ingests, 'sluice_http_refused_requests_total'));
  return {
    events: count('sluice_ingest_accepted_events_total'),
    rejectedCalls: count('sluice_ingest_rejected_calls_total'),
    clients: clientsOf(ingests),
    refused: refused.map(([code, requests]) => ({ code, requests })),
  };
}

function clientsOf(ingests: readonly string[]): ClientCalls[] {
  const rejected = seriesOf(ingests, 'sluice_ingest_rejected_calls_total');
  return sumsBy('client', seriesOf(ingests, 'sluice_ingest_calls_total'))
    .filter(([, calls]) => calls > 0)
    .map(([client, calls]) => {
      const reasons = sumsBy(
        'reason',
        rejected.filter(({ labels }) => labels['client'] === client),
      );
      return {
        ...{ client, calls, rejectedCalls: sum(reasons.map(([, count]) => count)) },
        reasons: reasons.map(([reason, count]) => ({ reason, calls: count })),
      };
    })
    .sort((a, b) => b.rejectedCalls - a.rejectedCalls);
}

function seriesOf(texts: readonly string[], metric: string): MetricSample[] {
  return texts.flatMap((text) => samplesOf(text, metric));
}

/** Adds up series by the value of a label, the largest sum first. */
function sumsBy(label: string, samples: readonly MetricSample[]): [value: string, sum: number][] {
  const sums = new Map<string, number>();
  for (const { labels, value } of samples) {
    const { [label]: name = '' } = labels;
    sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return [...sums].sort(([a, sumOfA], [b, sumOfB]) => sumOfB - sumOfA || (a < b ? -1 : 1));
}

/** Returns the state of the keys files that these metrics know; `null` when they know none. */
export function keysFileOf(services: readonly string[]): KeysFileState | null {
  const valid = services.flatMap((text) => valuesOf(text, 'sluice_keys_file_valid'));
  const ages = services.flatMap((text) => valuesOf(text, 'sluice_keys_file_age_seconds'));
  if (valid.length === 0) return null;
  return { valid: valid.every((one) => one === 1), ageSeconds: ages.length > 0 ? Math.max(...ages) : null };
}
