import { Counter, Gauge, type Registry } from 'prom-client';
import { CLIENTS } from './http/client-library.ts';

/** The metrics of ingest-api, besides those of every HTTP service (`@sluice/shared/http/metrics`). */
export function createIngestMetrics(registry: Registry) {
  const registers = [registry];
  const calls = new Counter({
    name: 'sluice_ingest_calls_total',
    help: 'Calls that were taken or rejected, by the client library that sent them.',
    labelNames: ['client'],
    registers,
  });
  // From 0 on: without that, the rate of a client would not have its first calls.
  for (const client of CLIENTS) calls.inc({ client }, 0);
  return {
    acceptedEvents: new Counter({
      name: 'sluice_ingest_accepted_events_total',
      help: 'Events that Kafka has acknowledged.',
      registers,
    }),
    calls,
    rejectedCalls: new Counter({
      name: 'sluice_ingest_rejected_calls_total',
      help: 'Calls that could not be taken, by the client library that sent them and the reason; the event log has them for the dead letters.',
      labelNames: ['client', 'reason'],
      registers,
    }),
    refusedLinks: new Counter({
      name: 'sluice_ingest_refused_links_total',
      help: 'Anonymous ids that were not linked to their user, who has too many of them already: an identifier that many people share.',
      registers,
    }),
    ignoredRecordings: new Counter({
      name: 'sluice_ingest_ignored_recordings_total',
      help: "Requests with recordings of sessions, which PostHog's clients send where they are told to; nothing of them is kept.",
      registers,
    }),
    ignoredRequests: new Counter({
      name: 'sluice_ingest_ignored_requests_total',
      help: 'Other requests of clients with what Sluice does not have, such as logs and push tokens; nothing of them is kept.',
      registers,
    }),
    lostMessages: new Counter({
      name: 'sluice_ingest_lost_messages_total',
      help: 'Messages that Kafka acknowledged and that its log no longer holds, as far as this process has noticed.',
      registers,
    }),
    leaderlessPartitions: new SampledGauge(registry, {
      name: 'sluice_ingest_leaderless_partitions',
      help: 'Partitions without a leader: nothing can be sent to them.',
      ofWorkers: 'max',
    }),
    failingPartitions: new SampledGauge(registry, {
      name: 'sluice_ingest_failing_partitions',
      help: 'Partitions to which the last send failed. It is tried again while requests wait for them.',
      ofWorkers: 'max',
    }),
    clockAhead: new SampledGauge(registry, {
      name: 'sluice_ingest_clock_ahead_seconds',
      help: "By how much this machine's clock is ahead of Kafka's; negative when it is behind.",
      ofWorkers: 'average',
    }),
    clockAheadLimit: new Gauge({
      name: 'sluice_ingest_clock_ahead_limit_seconds',
      help: 'By how much the clocks may differ (CLOCK_SKEW_MS_MAX). Beyond it, requests with a key get 503.',
      aggregator: 'max',
      registers,
    }),
    memoryBudget: new Gauge({
      name: 'sluice_ingest_memory_budget_bytes',
      help: 'Memory that all requests under way may reserve together.',
      registers,
    }),
    reservedMemory: new SampledGauge(registry, {
      name: 'sluice_ingest_reserved_bytes',
      help: 'Memory that requests under way have reserved.',
      ofWorkers: 'sum',
    }),
  };
}

export type IngestMetrics = ReturnType<typeof createIngestMetrics>;

interface SampledGaugeOptions {
  readonly name: string;
  readonly help: string;
  /** How the values of several workers become one. */
  readonly ofWorkers: 'max' | 'average' | 'sum';
}

/** A gauge that takes its value from a function whenever the metrics are read; 0 until it has one. */
class SampledGauge {
  #sample: () => number | undefined = () => undefined;

  constructor(registry: Registry, { name, help, ofWorkers }: SampledGaugeOptions) {
    const sample = () => this.#sample();
    new Gauge({
      name,
      help,
      aggregator: ofWorkers,
      registers: [registry],
      collect() {
        const value = sample();
        if (value !== undefined) this.set(value);
      },
    });
  }

  /** @param sample returns the value, or `undefined` to leave it as it is */
  sampleFrom(sample: () => number | undefined): void {
    this.#sample = sample;
  }
}
