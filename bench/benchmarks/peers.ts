import { together } from '../measure/cpu-time.ts';
import { startCollector } from '../peers/collector.ts';
import { breakPeer } from '../peers/faults.ts';
import { type Delivery, MeasuredPeer, type PeerCost, ROLES } from '../peers/measured-peer.ts';
import { Absent, type StartPeer } from '../peers/peer.ts';
import { startPipe } from '../peers/pipe.ts';
import { startSluice } from '../peers/sluice.ts';
import { Loader, type LoadShape } from '../processes/load.ts';
import { type Bar, type Benchmark, type Choices, type Figure, figureOf, p99, quotients } from '../report/benchmark.ts';

/** The peers by the names of the command line, each with its row of the tables. */
const PEERS_BY_NAME = {
  sluice: { row: 'Sluice', start: startSluice },
  pipe: { row: 'bare pipe', start: startPipe },
  collector: { row: 'OpenTelemetry collectors', start: startCollector },
  connect: {
    row: "Kafka Connect with ClickHouse's sink",
    start: () => Promise.reject(new Absent('the sink is not in Maven Central')),
  },
} satisfies Readonly<Record<string, { readonly row: string; readonly start: StartPeer }>>;

const SLUICE = PEERS_BY_NAME.sluice.row;
const PIPE = PEERS_BY_NAME.pipe.row;

const EVENTS_PER_REQUEST = 20;
const FULL_SPEED: LoadShape = { eventsPerRequest: EVENTS_PER_REQUEST, connections: 64, durationMs: 3_000 };
const STEADY_CONNECTIONS = 16;

/** Beside kills single events are sent, so that some are on their way at each kill. The load is stopped when these are done. */
const BESIDE_KILLS: LoadShape = { eventsPerRequest: 1, connections: 64, durationMs: 3_600_000 };

const CPU_BAR = { atMost: 1.3 };
const EXACT_BAR = { atMost: 0 };

interface Size extends Readonly<Record<string, number>> {
  readonly rounds: number;
  readonly seconds: number;
  readonly kills: number;
  readonly rate: number;
}

export const PEERS: Benchmark<Size> = {
  name: 'peers',
  title: 'Sluice beside other pipelines',
  method:
    'The same events of 600 bytes, 20 a request, through pipelines that each have a Kafka and a ClickHouse of their own, of the same versions and settings, in turn. ' +
    "The bare pipe is what the same parts do without a protocol: Fastify and kafkajs (`acks=-1`, a message for each request), and ClickHouse's own engine for Kafka with a materialized view into the same table, " +
    'with the same columns, indexes and projections; it flushes every 500 ms, its consumer has the session timeout of the others (10 s), and its sink is ClickHouse itself. OpenTelemetry collectors get the events as log records over HTTP, one sends them to Kafka (`acks=-1`, without a queue in memory), ' +
    'another one stores them in the table of its exporter, in batches of up to 500 ms, and commits after the insert. ' +
    'The cost is that of a load at full speed over 64 connections, until all is stored and merged. Latencies are those of a steady `rate` of events a second; an event is visible when the table returns it. ' +
    'Under as many single events each process is then killed (SIGKILL) and started again at once, `kills` times one after the other, and so is ClickHouse; at the end the broker is killed and away for five seconds. Clients repeat what was not acknowledged, with the same uuids. ' +
    'Afterwards acknowledged events are looked up by their uuids: lost ones are not stored, doubled ones more than once. Merges of the table are off meanwhile: those of `events` would remove copies later, as an insert does with those that it gets together.',
  size: { rounds: 3, seconds: 15, kills: 10, rate: 1_000 },
  parts: Object.keys(PEERS_BY_NAME),
  measure,
};

async function measure({ rounds, seconds, kills, rate }: Size, { only }: Choices): Promise<readonly Figure[]> {
  await using running = new AsyncDisposableStack();
  const loader = running.use(await Loader.start());
  const peers: MeasuredPeer[] = [];
  const absent: Figure[] = [];
  for (const [name, { row, start }] of Object.entries(PEERS_BY_NAME)) {
    if (only && !only.includes(name)) continue;
    console.error(`Starting ${row}`);
    try {
      peers.push(new MeasuredPeer(row, await start(running), loader));
    } catch (error) {
      if (!(error instanceof Absent)) throw error;
      absent.push({ table: 'Not measured', row, column: 'why', unit: '', value: 0, absent: error.message });
    }
  }
  const steady: LoadShape = {
    eventsPerRequest: EVENTS_PER_REQUEST,
    connections: STEADY_CONNECTIONS,
    requestsPerSecond: rate / EVENTS_PER_REQUEST,
    durationMs: seconds * 1_000,
  };
  const figures = [...(await measureCosts(peers, rounds)), ...(await measureLatencies(peers, steady, rate))];
  return [
    ...figures,
    ...(await countDeliveries(peers, { ...BESIDE_KILLS, requestsPerSecond: rate }, kills)),
    ...absent,
  ];
}

async function measureCosts(peers: readonly MeasuredPeer[], rounds: number): Promise<Figure[]> {
  const costs = new Map(peers.map(({ name }) => [name, [] as PeerCost[]]));
  // Round -1 warms up.
  for (let round = -1; round < rounds; round += 1) {
    for (const peer of peers) {
      console.error(`${peer.name} at full speed, ${round < 0 ? 'warm-up' : `round ${round + 1} of ${rounds}`}`);
      const cost = await peer.measureCost(FULL_SPEED);
      if (round >= 0) costs.get(peer.name)?.push(cost);
    }
  }
  const allOf = (ofPeer: readonly PeerCost[]) => ofPeer.map(({ cpuUs }) => together(cpuUs));
  const ofPipe = costs.get(PIPE);
  return [...costs].flatMap(([row, ofPeer]) => {
    const figure = (column: string, unit: string, values: readonly number[], bar?: Bar): Figure => ({
      table: '20 events a request at full speed',
      ...figureOf(row, column, unit, values, bar),
    });
    return [
      figure(
        'events stored',
        '/s',
        ofPeer.map(({ eventsPerSecond }) => eventsPerSecond),
      ),
      figure('CPU an event, together', 'µs', allOf(ofPeer)),
      ...(ofPipe
        ? [figure('÷ the bare pipe', '', quotients(allOf(ofPeer), allOf(ofPipe)), row === SLUICE ? CPU_BAR : undefined)]
        : []),
      ...ROLES.map((role) => {
        const us = ofPeer.flatMap(({ cpuUs }) => cpuUs[role] ?? []);
        return us.length > 0 ? figure(role, 'µs', us) : { ...figure(role, 'µs', [0]), absent: 'in ClickHouse' };
      }),
      figure(
        'acknowledged, median',
        'ms',
        ofPeer.map(({ latencyMs }) => latencyMs.median),
      ),
      figure(
        'acknowledged, p99',
        'ms',
        ofPeer.map(({ latencyMs }) => latencyMs.p99),
      ),
    ];
  });
}

async function measureLatencies(peers: readonly MeasuredPeer[], steady: LoadShape, rate: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const peer of peers) {
    console.error(`${peer.name} with ${rate} events a second`);
    const { latencyMs, visibleMs } = await peer.measureVisible(steady);
    const figure = (column: string, values: readonly number[]): Figure => ({
      table: `${rate.toLocaleString('en')} events a second`,
      ...figureOf(peer.name, column, 'ms', values),
    });
    figures.push(
      figure('acknowledged, median', [latencyMs.median]),
      figure('acknowledged, p99', [latencyMs.p99]),
      figure('visible, median', visibleMs),
      figure('visible, p99', [p99(visibleMs)]),
    );
  }
  return figures;
}

async function countDeliveries(peers: readonly MeasuredPeer[], load: LoadShape, kills: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const peer of peers) {
    console.error(`${peer.name} with kills`);
    const delivery = await peer.countDelivery(load, () => breakPeer(peer, kills));
    const figure = (column: keyof Delivery, bar?: Bar): Figure => ({
      table: 'After kills and an outage of the broker',
      ...figureOf(peer.name, column, '', [delivery[column]], bar),
    });
    const bar = peer.name === SLUICE ? EXACT_BAR : undefined;
    figures.push(figure('acknowledged'), figure('lost', bar), figure('doubled', bar));
  }
  return figures;
}
