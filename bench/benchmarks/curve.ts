import { sleep } from '@sluice/shared/retry';
import { difference } from '../measure/cpu-time.ts';
import { probe } from '../measure/probes.ts';
import type { LoadShape } from '../processes/load.ts';
import { type MeasuredServer, ReferenceServer } from '../processes/reference-server.ts';
import { type LoadCost, PROCESS_NAMES, type ProcessName, System } from '../processes/system.ts';
import {
  type Bar,
  type Benchmark,
  type Figure,
  figureOf,
  type OtherVersion,
  p99,
  quotients,
} from '../report/benchmark.ts';
import { drawCurve } from '../report/curve-picture.ts';

/** Single events a second, sent evenly, and their bars. */
const RATES: readonly Rate[] = [
  { perSecond: 0, cores: 0.05, visible: 300 },
  { perSecond: 1, cores: 0.08, acknowledged: [8, 40], visibleP99: 1_000 },
  { perSecond: 10, cores: 0.1, acknowledged: [8, 40], visibleP99: 1_000 },
  { perSecond: 100, cores: 0.18, acknowledged: [8, 40], visibleP99: 1_000 },
  { perSecond: 1_000, cores: 0.3, acknowledged: [8, 40], visibleP99: 1_000 },
  { perSecond: 3_000, cores: 0.45 },
];

interface Rate {
  readonly perSecond: number;
  /** At most, of all processes together. */
  readonly cores: number;
  /** At most, the median and p99, in milliseconds. */
  readonly acknowledged?: readonly [number, number];
  /** At most, the median and p99, in milliseconds. */
  readonly visible?: number;
  readonly visibleP99?: number;
}

/** Enough that no event waits for the response to another. */
const RATE_CONNECTIONS = 64;

/** How long a rate lasts before it is measured, in milliseconds. */
const WARM_UP_MS = 5_000;

/** How long connections send and wait in a round, in milliseconds; those of the bare Fastify need less. */
const ROUND_MS = 2_500;
const BARE_MS = 1_000;

/** How many connections send and wait. The bars hold for one event a request. */
const WAITING: readonly { connections: number; toAfternoon?: number; together?: number }[] = [
  { connections: 8, toAfternoon: 1, together: 400 },
  { connections: 64, toAfternoon: 1.5, together: 120 },
  { connections: 256, toAfternoon: 3, together: 80 },
  { connections: 512 },
];
const EVENTS_PER_REQUEST = [1, 20, 200];

/** What all connections together may have on their way, so that memory is no limit. */
const EVENTS_ON_THEIR_WAY_MAX = 20_000;

const ALL_PROCESSES: readonly ProcessName[] = [...PROCESS_NAMES, 'query-api'];

export const CURVE: Benchmark<{ seconds: number; rounds: number }> = {
  name: 'curve',
  title: 'What it costs to leave it running',
  method:
    'Single events at a steady rate, as an open loop: cores of each process, and latency from the moment at which a request was due; then, for as long, with probes ' +
    'beside them that wait until `GET /events` returns them. After that, connections that send a request and wait for its response, in turn with ' +
    'a bare Fastify that parses the same JSON and responds, and with one that sends each request to the same Kafka (`acks=-1`) as a message of its own before it responds, as a user would write it in an ' +
    'afternoon. The load generator, the services and both engines share the cores.',
  size: { seconds: 30, rounds: 3 },
  picture: {
    file: 'curve.svg',
    description: 'Cores of each process, and latency, by the number of single events a second',
    draw: drawCurve,
  },
  comparesVersions: true,
  measure,
};

/** A version of the services under measurement. */
interface Version {
  /** Of its tables: nothing for this version. */
  readonly suffix: string;
  readonly system: System;
}

async function measure(
  { seconds, rounds }: { seconds: number; rounds: number },
  other?: OtherVersion,
): Promise<readonly Figure[]> {
  await using running = new AsyncDisposableStack();
  const versions: Version[] = [{ suffix: '', system: running.use(await System.start()) }];
  if (other) {
    const system = running.use(await System.start({ checkout: other.checkout }));
    versions.push({ suffix: `, commit ${other.commit}`, system });
  }
  const figures = [...(await measureRates(versions, seconds * 1_000)), ...(await measureWaiting(versions, rounds))];
  for (const { system } of versions) await system.expectExactlyOnce();
  return figures;
}

async function measureRates(versions: readonly Version[], durationMs: number): Promise<Figure[]> {
  const figures = new Map(versions.map((version) => [version, [] as Figure[]]));
  for (const rate of RATES) {
    for (const version of versions) {
      console.error(`${rate.perSecond} events a second${version.suffix}`);
      figures.get(version)?.push(...(await measureRate(version, rate, durationMs)));
    }
  }
  return [...figures.values()].flat();
}

async function measureRate({ suffix, system }: Version, rate: Rate, durationMs: number): Promise<Figure[]> {
  await system.allStored();
  await system.mergesSettled();
  const send = async (ms: number) => {
    const { perSecond } = rate;
    if (perSecond === 0) return void (await sleep(ms));
    const shape = { eventsPerRequest: 1, connections: RATE_CONNECTIONS, durationMs: ms, requestsPerSecond: perSecond };
    return await system.load(shape);
  };
  const sending = send(WARM_UP_MS + durationMs);
  await sleep(WARM_UP_MS);
  const before = await system.cpuTimes(ALL_PROCESSES);
  const startedAt = performance.now();
  const sent = await sending;
  const used = difference(before, await system.cpuTimes(ALL_PROCESSES));
  const cores = (us: number) => us / 1_000 / (performance.now() - startedAt);
  // The probes take their numbers before the load takes its own.
  const probing = probe(system, durationMs);
  await send(durationMs);
  const visible = (await probing).map((one) => one.visible);

  const table = `Single events at a steady rate${suffix}`;
  const figure = (row: string, unit: string, values: readonly number[], most?: number): Figure => ({
    table,
    ...figureOf(
      row,
      `${rate.perSecond.toLocaleString('en')}/s`,
      unit,
      values,
      most === undefined ? undefined : atMost(most),
    ),
  });
  const { acknowledged: [median, slowest] = [] } = rate;
  return [
    figure('cores, together', '', [cores(Object.values(used).reduce((sum, us) => sum + us, 0))], rate.cores),
    ...ALL_PROCESSES.map((name) => figure(`cores, ${name}`, '', [cores(used[name] ?? Number.NaN)])),
    ...(sent
      ? [
          figure('acknowledged after, median', 'ms', [sent.latencyMs.median], median),
          figure('acknowledged after, p99', 'ms', [sent.latencyMs.p99], slowest),
        ]
      : []),
    figure('visible after, median', 'ms', visible, rate.visible),
    figure('visible after, p99', 'ms', [p99(visible)], rate.visibleP99),
  ];
}

interface WaitingRound {
  readonly bare: MeasuredServer;
  readonly afternoon: MeasuredServer;
  readonly costs: ReadonlyMap<Version, LoadCost>;
}

async function measureWaiting(versions: readonly Version[], rounds: number): Promise<Figure[]> {
  const [version] = versions;
  if (!version) return [];
  using bare = await ReferenceServer.startBare();
  using afternoon = await ReferenceServer.startProducing(version.system.kafkaBrokers);
  const { loader } = version.system;
  const figures: Figure[] = [];
  for (const eventsPerRequest of EVENTS_PER_REQUEST) {
    for (const waiting of WAITING) {
      const { connections } = waiting;
      if (connections * eventsPerRequest > EVENTS_ON_THEIR_WAY_MAX) continue;
      console.error(`${connections} connections with ${eventsPerRequest} events a request`);
      const shape: LoadShape = { eventsPerRequest, connections, durationMs: ROUND_MS };
      const measured: WaitingRound[] = [];
      // Round -1 warms up.
      for (let round = -1; round < rounds; round += 1) {
        const costs = new Map<Version, LoadCost>();
        const found = {
          bare: await bare.measure(loader, { ...shape, durationMs: BARE_MS }),
          afternoon: await afternoon.measure(loader, shape),
        };
        for (const one of versions) costs.set(one, await one.system.measureCost(shape));
        if (round >= 0) measured.push({ ...found, costs });
      }
      figures.push(...figuresOfWaiting(versions, { ...waiting, eventsPerRequest }, measured));
    }
  }
  return figures;
}

function figuresOfWaiting(
  versions: readonly Version[],
  { connections, eventsPerRequest, ...bars }: (typeof WAITING)[number] & { readonly eventsPerRequest: number },
  rounds: readonly WaitingRound[],
): Figure[] {
  const table = `Connections that send ${eventsPerRequest === 1 ? 'one event' : `${eventsPerRequest} events`} and wait`;
  const figure = (row: string, unit: string, values: readonly number[], bar?: Bar): Figure => ({
    table,
    ...figureOf(row, `${connections} connections`, unit, values, bar),
  });
  const isBarred = eventsPerRequest === 1;
  const atLeast = bars.toAfternoon === undefined || !isBarred ? undefined : { atLeast: bars.toAfternoon };
  const most = bars.together === undefined || !isBarred ? undefined : atMost(bars.together);
  const costsOf = (version: Version) => rounds.flatMap(({ costs }) => costs.get(version) ?? []);
  const afternoon = rounds.map((round) => round.afternoon.requestsPerSecond);
  const figures = versions.flatMap((version) => {
    const costs = costsOf(version);
    const of = (row: string) => `${row}${version.suffix}`;
    const rates = costs.map(({ requestsPerSecond }) => requestsPerSecond);
    const isThis = version.suffix === '';
    const together = costs.map(({ cpuUs }) => Object.values(cpuUs).reduce((sum, us) => sum + us, 0));
    return [
      figure(of('requests'), '/s', rates),
      figure(of('requests ÷ those of the afternoon'), '', quotients(rates, afternoon), isThis ? atLeast : undefined),
      figure(of('CPU an event, together'), 'µs', together, isThis ? most : undefined),
      ...PROCESS_NAMES.map((name) =>
        figure(
          of(`CPU an event, ${name}`),
          'µs',
          costs.map(({ cpuUs }) => cpuUs[name] ?? Number.NaN),
        ),
      ),
      figure(
        of('response, median'),
        'ms',
        costs.map(({ latencyMs }) => latencyMs.median),
      ),
    ];
  });
  return [
    ...figures,
    figure('requests, afternoon', '/s', afternoon),
    figure(
      'response of the afternoon, median',
      'ms',
      rounds.map((round) => round.afternoon.latencyMs.median),
    ),
    figure(
      'requests, bare Fastify',
      '/s',
      rounds.map((round) => round.bare.requestsPerSecond),
    ),
  ];
}

function atMost(limit: number): Bar {
  return { atMost: limit };
}
