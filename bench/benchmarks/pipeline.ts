import { difference, together } from '../measure/cpu-time.ts';
import type { LoadShape } from '../processes/load.ts';
import { ReferenceServer } from '../processes/reference-server.ts';
import { StraightInserts } from '../processes/straight-inserts.ts';
import { type LoadCost, PROCESS_NAMES, type System } from '../processes/system.ts';
import { startVersions, type Version } from '../processes/versions.ts';
import { type Bar, type Benchmark, type Choices, type Figure, figureOf, median } from '../report/benchmark.ts';

interface Load extends LoadShape {
  readonly column: string;
  readonly bars: {
    /** CPU microseconds an event over all processes, on the machine of the bars. */
    readonly together?: Bar;
    /** The same, divided by a bare Fastify and straight inserts together. */
    readonly toParts?: Bar;
    /** The CPU time of ingest-api a request, divided by that of a bare Fastify. */
    readonly ingest?: Bar;
  };
}

/** How long the load lasts in a round, and that on the bare Fastify, in milliseconds. */
const ROUND_MS = 2_500;
const BARE_MS = 1_000;

const LOADS: readonly Load[] = [
  {
    ...{ column: '1 a request', eventsPerRequest: 1, connections: 256, durationMs: ROUND_MS },
    bars: { together: { atMost: 60 }, toParts: { atMost: 2 }, ingest: { atMost: 1.6 } },
  },
  {
    ...{ column: '20 a request', eventsPerRequest: 20, connections: 64, durationMs: ROUND_MS },
    bars: { together: { atMost: 15 }, toParts: { atMost: 1.5 } },
  },
  {
    ...{ column: '200 a request', eventsPerRequest: 200, connections: 16, durationMs: ROUND_MS },
    bars: { toParts: { atMost: 1.3 } },
  },
  {
    ...{ column: '20 a request, gzip', eventsPerRequest: 20, connections: 64, durationMs: ROUND_MS, gzip: true },
    bars: {},
  },
];

/** What a bare Fastify uses for a request with one event on the machine of the bars, in CPU microseconds. */
const BARE_US = 23;

const WRITER_BAR = { atMost: 0.2 };

export const PIPELINE: Benchmark<{ rounds: number }> = {
  name: 'pipeline',
  title: 'The cost of an event in the whole pipeline',
  method:
    'From the first request until every event is stored, visible and merged, with everything on. Events of 600 bytes over ' +
    '256, 64 and 16 connections. In each round a bare Fastify parses the same JSON, and the same rows are inserted straight ' +
    `into ClickHouse, to show what the parts cost. The bars in µs are those of a machine on which the bare Fastify uses ${BARE_US} µs ` +
    'for a request with one event; the last row says how much slower this one was.',
  size: { rounds: 7 },
  comparesVersions: true,
  measure,
};

interface Round extends LoadCost {
  readonly straightUs: number;
  /** CPU time of the bare Fastify, in microseconds a request. */
  readonly bareUs: number;
}

async function measure({ rounds }: { rounds: number }, { other }: Choices): Promise<readonly Figure[]> {
  await using running = new AsyncDisposableStack();
  const versions = await startVersions(running, other);
  const straight = new Map<Version, StraightInserts>();
  for (const version of versions) {
    straight.set(version, running.use(await StraightInserts.start(version.system.engines.clickhouse.url)));
  }
  using bare = await ReferenceServer.startBare();
  const { loader } = versions[0].system;
  const figures: Figure[] = [];
  for (const load of LOADS) {
    console.error(load.column);
    const measured = new Map(versions.map((version) => [version, [] as Round[]]));
    // Round -1 warms up.
    for (let round = -1; round < rounds; round += 1) {
      const { cpuUs: bareUs } = await bare.measure(loader, { ...load, gzip: false, durationMs: BARE_MS });
      for (const [version, inserts] of straight) {
        // Older versions reserve the memory of the largest body for each compressed one, and refuse the other requests.
        if (load.gzip && version.commit !== undefined) continue;
        const figuresOfRound = await measureRound(version.system, inserts, load);
        if (round >= 0) measured.get(version)?.push({ ...figuresOfRound, bareUs });
      }
    }
    for (const [version, ofVersion] of measured) {
      if (ofVersion.length > 0) figures.push(...figuresOf(version, load, ofVersion));
    }
  }
  for (const { system } of versions) await system.expectExactlyOnce();
  return figures;
}

async function measureRound(system: System, straight: StraightInserts, load: Load): Promise<Omit<Round, 'bareUs'>> {
  const cost = await system.measureCost(load);
  const before = await system.cpuTimes(['ClickHouse']);
  await straight.insert(cost.events);
  await system.engines.mergesSettled();
  const used = difference(before, await system.cpuTimes(['ClickHouse']));
  return { ...cost, straightUs: (used['ClickHouse'] ?? Number.NaN) / cost.events };
}

function figuresOf({ commit }: Version, { column, eventsPerRequest, bars }: Load, rounds: readonly Round[]): Figure[] {
  const table = commit === undefined ? {} : { table: `Commit ${commit}` };
  const figure = (row: string, unit: string, read: (round: Round) => number, bar?: Bar): Figure => ({
    ...table,
    ...figureOf(row, column, unit, rounds.map(read), bar),
  });
  const usOf = ({ cpuUs }: Round, process: string) => cpuUs[process] ?? Number.NaN;
  const bareUs = (round: Round) => round.bareUs / eventsPerRequest;
  const slowness = median(rounds.map((round) => round.bareUs)) / BARE_US;
  return [
    figure('CPU an event, together', 'µs', ({ cpuUs }) => together(cpuUs), bars.together),
    figure(
      'together ÷ (bare Fastify + straight into ClickHouse)',
      '',
      (round) => together(round.cpuUs) / (bareUs(round) + round.straightUs),
      bars.toParts,
    ),
    ...PROCESS_NAMES.map((name) => figure(`CPU an event, ${name}`, 'µs', (round) => usOf(round, name))),
    figure('CPU an event, bare Fastify', 'µs', bareUs),
    figure('CPU an event, straight into ClickHouse', 'µs', ({ straightUs }) => straightUs),
    figure('ingest-api ÷ bare Fastify', '', (round) => usOf(round, 'ingest-api') / bareUs(round), bars.ingest),
    figure('writer ÷ ClickHouse', '', (round) => usOf(round, 'writer') / usOf(round, 'ClickHouse'), WRITER_BAR),
    figure('events stored and visible', '/s', ({ eventsPerSecond }) => eventsPerSecond),
    figure('acknowledged after, median', 'ms', ({ latencyMs }) => latencyMs.median),
    figure('acknowledged after, p99', 'ms', ({ latencyMs }) => latencyMs.p99),
    ...(eventsPerRequest === 1
      ? [{ ...table, ...figureOf('this machine ÷ that of the bars', column, '', [slowness]) }]
      : []),
  ];
}
