import { cpuTimeUs, difference } from '../measure/cpu-time.ts';
import type { LoadShape } from '../processes/load.ts';
import { ReferenceServer } from '../processes/reference-server.ts';
import { System } from '../processes/system.ts';
import { type Bar, type Benchmark, type Figure, figureOf, quotients } from '../report/benchmark.ts';

interface Load extends LoadShape {
  readonly column: string;
  /** The bound of the requests a second of ingest-api, divided by those of a bare Fastify. */
  readonly bar: Bar;
}

const ROUND_MS = 3_000;

/** There are so many connections that latency does not limit throughput. */
const LOADS: readonly Load[] = [
  {
    column: '1 event a request',
    eventsPerRequest: 1,
    connections: 256,
    durationMs: ROUND_MS,
    bar: { atLeast: 0.7 },
  },
  {
    column: '20 events a request',
    eventsPerRequest: 20,
    connections: 64,
    durationMs: ROUND_MS,
    bar: { atLeast: 0.5 },
  },
];

export const INGEST: Benchmark<{ rounds: number }> = {
  name: 'ingest',
  title: 'Accepting events',
  method:
    'ingest-api with a real Kafka, which has acknowledged each event before the response, in turn with a bare Fastify that ' +
    'parses the same JSON and responds 202. Events of 600 bytes, 256 connections with 1 event a request and 64 with 20. ' +
    'The same events are also sent as track calls, and as events of PostHog. The writer is down meanwhile, and stores everything at the end.',
  size: { rounds: 7 },
  measure,
};

interface Round {
  readonly requestsPerSecond: number;
  readonly latencyMs: { readonly median: number; readonly p99: number };
  /** CPU time of each process, in microseconds per event. */
  readonly cpuUs: Readonly<Record<string, number>>;
}

/** The rounds of one load. The bare Fastify is measured twice, to show the noise. */
interface Rounds {
  readonly ingest: Round[];
  readonly calls: Round[];
  readonly posthog: Round[];
  readonly bare: { readonly requestsPerSecond: number; readonly cpuUs: number }[];
  readonly again: { readonly requestsPerSecond: number }[];
}

async function measure({ rounds }: { rounds: number }): Promise<readonly Figure[]> {
  await using system = await System.start();
  using bare = await ReferenceServer.startBare();
  await system.pipeline.services.writer.kill9();
  const figures: Figure[] = [];
  for (const load of LOADS) {
    const measured: Rounds = { ingest: [], calls: [], posthog: [], bare: [], again: [] };
    const warmUp = { ...load, durationMs: ROUND_MS / 2 };
    await bare.measure(system.loader, warmUp);
    for (const form of ['submissions', 'calls', 'posthog'] as const) await measureIngest(system, { ...warmUp, form });
    for (let round = 0; round < rounds; round += 1) {
      measured.bare.push(await bare.measure(system.loader, load));
      measured.ingest.push(await measureIngest(system, load));
      measured.calls.push(await measureIngest(system, { ...load, form: 'calls' }));
      measured.posthog.push(await measureIngest(system, { ...load, form: 'posthog' }));
      measured.again.push(await bare.measure(system.loader, load));
    }
    figures.push(...figuresOf(load, measured));
  }
  await system.pipeline.restart('writer');
  await system.expectExactlyOnce();
  return figures;
}

async function measureIngest(system: System, load: LoadShape): Promise<Round> {
  const cpuTimes = async () => ({
    ...(await system.cpuTimes(['ingest-api', 'Kafka'])),
    'load generator': await cpuTimeUs(system.loader.pid),
  });
  const before = await cpuTimes();
  const { requests, seconds, events, latencyMs } = await system.load(load);
  const used = difference(before, await cpuTimes());
  return {
    requestsPerSecond: requests / seconds,
    latencyMs,
    cpuUs: Object.fromEntries(Object.entries(used).map(([name, us]) => [name, us / events])),
  };
}

function figuresOf({ column, eventsPerRequest, bar }: Load, { ingest, calls, posthog, bare, again }: Rounds): Figure[] {
  const rates = (rounds: readonly { requestsPerSecond: number }[]) =>
    rounds.map(({ requestsPerSecond }) => requestsPerSecond);
  const cpu = (rounds: readonly Round[], name: string) => rounds.map(({ cpuUs }) => cpuUs[name] ?? Number.NaN);
  const bareUs = bare.map(({ cpuUs }) => cpuUs / eventsPerRequest);
  const ingestUs = cpu(ingest, 'ingest-api');
  const callsUs = cpu(calls, 'ingest-api');
  const posthogUs = cpu(posthog, 'ingest-api');
  const figure = (row: string, unit: string, values: readonly number[], most?: Bar) =>
    figureOf(row, column, unit, values, most);
  return [
    figure('requests a second ÷ bare Fastify', '', quotients(rates(ingest), rates(bare)), bar),
    figure('bare Fastify ÷ itself (the noise)', '', quotients(rates(again), rates(bare))),
    figure('requests', '/s', rates(ingest)),
    figure(
      'events',
      '/s',
      rates(ingest).map((rate) => rate * eventsPerRequest),
    ),
    figure(
      'response, median',
      'ms',
      ingest.map(({ latencyMs }) => latencyMs.median),
    ),
    figure(
      'response, p99',
      'ms',
      ingest.map(({ latencyMs }) => latencyMs.p99),
    ),
    figure('CPU an event, ingest-api', 'µs', ingestUs),
    figure('CPU an event, Kafka', 'µs', cpu(ingest, 'Kafka')),
    figure('CPU an event, bare Fastify', 'µs', bareUs),
    figure('CPU an event, load generator', 'µs', cpu(ingest, 'load generator')),
    figure('CPU of ingest-api ÷ bare Fastify', '', quotients(ingestUs, bareUs)),
    figure('CPU of ingest-api, calls ÷ submissions', '', quotients(callsUs, ingestUs), { atMost: 1.3 }),
    figure('CPU of ingest-api, events of PostHog ÷ submissions', '', quotients(posthogUs, ingestUs), { atMost: 1.3 }),
  ];
}
