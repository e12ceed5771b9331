import { cpuTimeUs } from './cpu-time.ts';
import { createTally, median, spread } from './figures.ts';
import { measureLatency } from './latency.ts';
import { forkReady, type Loader, startLoader } from './load.ts';
import { measureMemory } from './memory.ts';
import { type Report, saveReport } from './report.ts';
import { type StraightInserts, startStraightInserts } from './straight-inserts.ts';
import { difference, type System, startSystem } from './system.ts';

interface Case {
  readonly name: string;
  readonly eventsPerRequest: number;
  readonly connections: number;
  readonly gzip: boolean;
  /** CPU microseconds an event over all processes, on the machine of the bars. */
  readonly bar?: number;
}

const CASES: readonly Case[] = [
  { name: '1 a request', eventsPerRequest: 1, connections: 256, gzip: false, bar: 60 },
  { name: '20 a request', eventsPerRequest: 20, connections: 64, gzip: false, bar: 15 },
  { name: '200 a request', eventsPerRequest: 200, connections: 16, gzip: false },
  { name: '1 a request, gzip', eventsPerRequest: 1, connections: 256, gzip: true },
  { name: '20 a request, gzip', eventsPerRequest: 20, connections: 64, gzip: true },
  { name: '200 a request, gzip', eventsPerRequest: 200, connections: 16, gzip: true },
];

/** The CPU time of ingest-api a request, over that of a bare Fastify. */
const INGEST_BAR = 1.6;

/** What a bare Fastify uses for a request with one event on the machine of the bars, in CPU microseconds. */
const BARE_US = 23;

/** How long the load lasts in a round, in milliseconds. */
const ROUND_MS = { whole: 4_000, quick: 1_500 };

interface Round {
  readonly eventsPerSecond: number;
  readonly ackMs: { readonly median: number; readonly p99: number };
  /** CPU time of each process, in microseconds an event. */
  readonly cpuUs: Readonly<Record<string, number>>;
  readonly straightUs: number;
  /** CPU time of the bare Fastify, in microseconds a request. */
  readonly bareUs: number;
}

/** What all measurements of a run share. */
export interface Bench {
  readonly system: System;
  readonly loader: Loader;
  readonly tally: ReturnType<typeof createTally>;
}

/**
 * Measures the whole pipeline: cost, throughput and latency, from the first request until all events are stored, visible
 * and merged, in turn with a bare Fastify that parses the same JSON and with inserts of the same rows straight into
 * ClickHouse; then latency when idle and at half of capacity, and memory under a long load.
 *
 * @returns whether all accepted events are stored once
 */
export async function benchPipeline({
  rounds,
  quick,
  save,
}: {
  rounds: number;
  quick: boolean;
  save: boolean;
}): Promise<boolean> {
  await using system = await startSystem();
  await using straight = await startStraightInserts(system.clickhouseUrl);
  const loader = await startLoader();
  const bare = await forkReady('bare-fastify.ts');
  const bench: Bench = { system, loader, tally: createTally() };
  const report: Report = {};
  try {
    for (const tested of quick ? CASES.slice(0, 2) : CASES) {
      const measured: Round[] = [];
      // Round -1 warms up.
      for (let round = -1; round < rounds; round += 1) {
        const bareUs = await measureBare(bench, tested, bare, quick);
        const figures = await measureRound(bench, tested, straight, quick);
        if (round >= 0) measured.push({ ...figures, bareUs });
      }
      report[tested.name] = print(tested, measured);
    }
    const capacity = Number.parseFloat(String(report['20 a request']?.['stored events/s'] ?? '0').replaceAll(',', ''));
    report['latency'] = await measureLatency(bench, capacity, quick);
    report['memory'] = await measureMemory(bench, capacity, quick);
    const sound = bench.tally.verdict(await system.stored());
    if (sound && save)
      await saveReport('pipeline', { rounds }, report, (await system.query('SELECT version()')).trim());
    return sound;
  } finally {
    loader.stop();
    bare.process.kill();
  }
}

async function measureBare(
  { loader, system }: Bench,
  { eventsPerRequest, connections }: Case,
  bare: Awaited<ReturnType<typeof forkReady>>,
  quick: boolean,
): Promise<number> {
  const pid = bare.process.pid ?? -1;
  const before = await cpuTimeUs(pid);
  const durationMs = (quick ? ROUND_MS.quick : ROUND_MS.whole) / 2;
  const spec = { url: String(bare.message), key: system.pipeline.key, eventsPerRequest, connections, durationMs };
  const { requests } = await loader.run({ ...spec, firstEvent: 0 });
  return ((await cpuTimeUs(pid)) - before) / requests;
}

async function measureRound(
  { system, loader, tally }: Bench,
  { eventsPerRequest, connections, gzip }: Case,
  straight: StraightInserts,
  quick: boolean,
): Promise<Omit<Round, 'bareUs'>> {
  const durationMs = quick ? ROUND_MS.quick : ROUND_MS.whole;
  const before = await system.cpuTimes();
  const start = performance.now();
  const result = await loader.run({
    ...system.target,
    eventsPerRequest,
    connections,
    gzip,
    durationMs,
    firstEvent: tally.events,
  });
  tally.add(result);
  await system.storedAtLeast(tally.events);
  const seconds = (performance.now() - start) / 1_000;
  await system.mergesSettled();
  const used = difference(before, await system.cpuTimes());
  const beforeStraight = await system.cpuTimes(['ClickHouse']);
  await straight.insert(result.events);
  await system.mergesSettled();
  const usedStraight = difference(beforeStraight, await system.cpuTimes(['ClickHouse']));
  return {
    eventsPerSecond: result.events / seconds,
    ackMs: result.latencyMs,
    cpuUs: Object.fromEntries(Object.entries(used).map(([name, us]) => [name, us / result.events])),
    straightUs: (usedStraight['ClickHouse'] ?? Number.NaN) / result.events,
  };
}

function print({ name, eventsPerRequest, bar }: Case, rounds: readonly Round[]): Record<string, string> {
  const together = rounds.map(({ cpuUs }) => Object.values(cpuUs).reduce((sum, us) => sum + us, 0));
  const of = (process: string) => rounds.map(({ cpuUs }) => cpuUs[process] ?? Number.NaN);
  const ingestToBare = rounds.map(
    (round) => ((round.cpuUs['ingest-api'] ?? Number.NaN) * eventsPerRequest) / round.bareUs,
  );
  const slowness = median(rounds.map(({ bareUs }) => bareUs)) / BARE_US;
  const lines: Record<string, string> = {
    'stored events/s': spread(rounds.map(({ eventsPerSecond }) => eventsPerSecond)),
    ...Object.fromEntries(
      ['ingest-api', 'Kafka', 'writer', 'ClickHouse'].map((process) => [
        `CPU µs an event, ${process}`,
        spread(of(process), 1),
      ]),
    ),
    'CPU µs an event, together': spread(together, 1),
    'CPU µs an event, straight into ClickHouse': spread(
      rounds.map(({ straightUs }) => straightUs),
      1,
    ),
    'CPU µs a request, bare Fastify': spread(
      rounds.map(({ bareUs }) => bareUs),
      1,
    ),
    'CPU a request, ingest-api ÷ bare Fastify': spread(ingestToBare, 2),
    'acknowledged after ms, median': spread(
      rounds.map(({ ackMs }) => ackMs.median),
      1,
    ),
    'acknowledged after ms, p99': spread(
      rounds.map(({ ackMs }) => ackMs.p99),
      1,
    ),
  };
  if (eventsPerRequest === 1) {
    lines['this machine ÷ that of the bars'] = slowness.toFixed(2);
    lines[`ingest-api: bar ${INGEST_BAR}`] = median(ingestToBare) <= INGEST_BAR ? 'met' : 'MISSED';
  }
  if (bar !== undefined) lines[`together: bar ${bar}`] = median(together) <= bar ? 'met' : 'MISSED';
  console.log(`\n${name}: median (lowest to highest) of ${rounds.length} rounds`);
  console.table(lines);
  return lines;
}
