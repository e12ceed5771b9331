import { sleep } from '@sluice/shared/base/retry';
import { difference, together } from '../measure/cpu-time.ts';
import { probe, QUIET_INTERVAL_MS } from '../measure/probes.ts';
import type { LoadShape } from '../processes/load.ts';
import { type MeasuredServer, ReferenceServer } from '../processes/reference-server.ts';
import { type LoadCost, PROCESS_NAMES, type ProcessName } from '../processes/system.ts';
import { startVersions, suffixOf, type Version } from '../processes/versions.ts';
import { type Bar, type Benchmark, type Choices, type Figure, figureOf, p99, quotients } from '../report/benchmark.ts';
import { drawCurve, STEADY_RATES } from '../report/curve-picture.ts';

/** In milliseconds. */
const LATENCIES = {
  acknowledged: { atMost: 8 },
  acknowledgedP99: { atMost: 40 },
  visibleP99: { atMost: 1_000 },
} as const;

/** Single events a second, sent evenly, and their bars. */
const RATES: readonly Rate[] = [
  { perSecond: 0, cores: { atMost: 0.05 }, visible: { atMost: 300 } },
  { perSecond: 1, cores: { atMost: 0.08 }, ...LATENCIES },
  { perSecond: 10, cores: { atMost: 0.1 }, ...LATENCIES },
  { perSecond: 100, cores: { atMost: 0.18 }, ...LATENCIES },
  { perSecond: 1_000, cores: { atMost: 0.3 }, ...LATENCIES },
  { perSecond: 3_000, cores: { atMost: 0.45 } },
];

interface Rate {
  readonly perSecond: number;
  /** The most CPU of all processes together, in cores. */
  readonly cores: Bar;
  /** What medians and p99 may be at most, in milliseconds. */
  readonly acknowledged?: Bar;
  readonly acknowledgedP99?: Bar;
  readonly visible?: Bar;
  readonly visibleP99?: Bar;
}

/** Enough that no event waits for the response to another. At the end each connection still sends one, in turn. */
const RATE_CONNECTIONS_MAX = 64;

/** How long a rate lasts before it is measured, in milliseconds. */
const WARM_UP_MS = 5_000;

/** How long connections send and wait in a round, in milliseconds; those of the bare Fastify need less. */
const ROUND_MS = 2_500;
const BARE_MS = 1_000;

/** How many connections send and wait, and the bars of one event a request. */
const WAITING: readonly Waiting[] = [
  { connections: 8, bars: { toAfternoon: { atLeast: 1 }, together: { atMost: 400 } } },
  { connections: 64, bars: { toAfternoon: { atLeast: 1.5 }, together: { atMost: 120 } } },
  { connections: 256, bars: { toAfternoon: { atLeast: 3 }, together: { atMost: 80 } } },
  { connections: 512, bars: {} },
];

interface Waiting {
  readonly connections: number;
  readonly bars: {
    /** Requests a second, divided by those of the afternoon. */
    readonly toAfternoon?: Bar;
    /** CPU microseconds an event over all processes. */
    readonly together?: Bar;
  };
}

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

async function measure(
  { seconds, rounds }: { seconds: number; rounds: number },
  { other }: Choices,
): Promise<readonly Figure[]> {
  await using running = new AsyncDisposableStack();
  const versions = await startVersions(running, other);
  const figures = [...(await measureRates(versions, seconds * 1_000)), ...(await measureWaiting(versions, rounds))];
  for (const { system } of versions) await system.expectExactlyOnce();
  return figures;
}

async function measureRates(versions: readonly Version[], durationMs: number): Promise<Figure[]> {
  const figures = new Map(versions.map((version) => [version, [] as Figure[]]));
  for (const rate of RATES) {
    for (const version of versions) {
      console.error(`${rate.perSecond} events a second${suffixOf(version)}`);
      figures.get(version)?.push(...(await measureRate(version, rate, durationMs)));
    }
  }
  return [...figures.values()].flat();
}

async function measureRate(version: Version, rate: Rate, durationMs: number): Promise<Figure[]> {
  const { system } = version;
  await system.allStored();
  const send = async (ms: number) => {
    const { perSecond } = rate;
    if (perSecond === 0) return void (await sleep(ms));
    const connections = Math.min(perSecond, RATE_CONNECTIONS_MAX);
    const shape = { eventsPerRequest: 1, connections, durationMs: ms, requestsPerSecond: perSecond };
    return await system.load(shape);
  };
  const sending = send(WARM_UP_MS + durationMs);
  await sleep(WARM_UP_MS);
  const before = await system.cpuTimes(ALL_PROCESSES);
  const startedAt = performance.now();
  const sent = await sending;
  const used = difference(before, await system.cpuTimes(ALL_PROCESSES));
  const measuredUs = (performance.now() - startedAt) * 1_000;
  // The probes take their numbers before the load takes its own.
  const probing = probe(system, durationMs, rate.perSecond === 0 ? QUIET_INTERVAL_MS : undefined);
  await send(durationMs);
  const visible = (await probing).map((one) => one.visible);

  const table = `${STEADY_RATES}${suffixOf(version)}`;
  const figure = (row: string, unit: string, values: readonly number[], bar?: Bar): Figure => ({
    table,
    ...figureOf(row, `${rate.perSecond.toLocaleString('en')}/s`, unit, values, bar),
  });
  return [
    figure('cores, together', '', [together(used) / measuredUs], rate.cores),
    ...ALL_PROCESSES.map((name) => figure(`cores, ${name}`, '', [(used[name] ?? Number.NaN) / measuredUs])),
    ...(sent
      ? [
          figure('acknowledged after, median', 'ms', [sent.latencyMs.median], rate.acknowledged),
          figure('acknowledged after, p99', 'ms', [sent.latencyMs.p99], rate.acknowledgedP99),
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

async function measureWaiting(versions: readonly [Version, ...Version[]], rounds: number): Promise<Figure[]> {
  const [version] = versions;
  using bare = await ReferenceServer.startBare();
  using afternoon = await ReferenceServer.startProducing(version.system.engines.kafka.brokers);
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
  { connections, eventsPerRequest, ...waiting }: Waiting & { readonly eventsPerRequest: number },
  rounds: readonly WaitingRound[],
): Figure[] {
  const table = `Connections that send ${eventsPerRequest === 1 ? 'one event' : `${eventsPerRequest} events`} and wait`;
  const figure = (row: string, unit: string, values: readonly number[], bar?: Bar): Figure => ({
    table,
    ...figureOf(row, `${connections} connections`, unit, values, bar),
  });
  const costsOf = (version: Version) => rounds.flatMap(({ costs }) => costs.get(version) ?? []);
  const afternoon = rounds.map((round) => round.afternoon.requestsPerSecond);
  const figures = versions.flatMap((version) => {
    const costs = costsOf(version);
    const of = (row: string) => `${row}${suffixOf(version)}`;
    const rates = costs.map(({ requestsPerSecond }) => requestsPerSecond);
    const bars = eventsPerRequest === 1 && version.commit === undefined ? waiting.bars : {};
    return [
      figure(of('requests'), '/s', rates),
      figure(of('requests ÷ those of the afternoon'), '', quotients(rates, afternoon), bars.toAfternoon),
      figure(
        of('CPU an event, together'),
        'µs',
        costs.map(({ cpuUs }) => together(cpuUs)),
        bars.together,
      ),
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
