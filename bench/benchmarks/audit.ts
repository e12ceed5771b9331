import { sleep } from '@sluice/shared/base/retry';
import { producePastEvents } from '../data/past-events.ts';
import { difference, together } from '../measure/cpu-time.ts';
import { type MeasuredAudit, measureAudit } from '../measure/measured-audit.ts';
import { System } from '../processes/system.ts';
import { type Benchmark, type Figure, figureOf, median, p99, quotients, VoidRun } from '../report/benchmark.ts';

/** As many as topics have by default. */
const PARTITIONS = 48;

const LOAD = { eventsPerRequest: 20, connections: 16, requestsPerSecond: 50 };

/** A page is asked for about so often, in milliseconds. */
const PAGE_MS = 40;

const MEBIBYTE = 2 ** 20;

const STORING_BAR = { atMost: 1 };
const MEMORY_BAR = { atMost: 512 };
const BESIDE_BAR = { atMost: 1.3 };

export const AUDIT: Benchmark<{ events: number; rounds: number }> = {
  name: 'audit',
  title: 'An audit, and what others notice of it',
  method:
    'Events of 400 bytes, received three hours ago, are sent to Kafka and stored. Then `sluice audit` looks at all of them at its default ' +
    'rate, in turn with as long a time without it. Meanwhile 1,000 other events a second are sent, 20 a request, and the newest page is ' +
    'asked for all the time. CPU is that of the command and of ClickHouse, without what ClickHouse used for the others; that of storing is of ' +
    'the writer and ClickHouse. The load generator, the services and both engines share the cores.',
  size: { events: 1_000_000, rounds: 5 },
  measure,
};

/** What others notice in some time, in milliseconds. */
interface Beside {
  readonly acknowledged: { readonly median: number; readonly p99: number };
  readonly page: { readonly median: number; readonly p99: number };
  /** CPU time that ClickHouse used, in microseconds. */
  readonly clickHouseUs: number;
}

async function measure({ events, rounds }: { events: number; rounds: number }): Promise<readonly Figure[]> {
  await using system = await System.start();
  const { pipeline, engines, tally } = system;
  const stores = ['writer', 'ClickHouse'] as const;
  const before = await system.cpuTimes(stores);
  const ofLog = { kafkaBrokers: engines.kafka.brokers, topic: 'bench.events', partitions: PARTITIONS, events };
  await producePastEvents(ofLog);
  tally.add({ events, numbersSum: '0', fault: undefined });
  await system.allStored();
  await engines.mergesSettled();
  const storingUs = together(difference(before, await system.cpuTimes(stores)));

  const audits: (MeasuredAudit & { readonly engineUs: number })[] = [];
  const alone: Beside[] = [];
  const audited: Beside[] = [];
  // The first one warms up, and says how long an audit takes.
  let durationMs = (await auditOnce(system, events)).ms;
  for (let round = 0; round < rounds; round += 1) {
    const quiet = await loadFor(system, durationMs);
    const auditing = auditOnce(system, events);
    const busy = await loadFor(system, durationMs);
    const audit = await auditing;
    durationMs = audit.ms;
    alone.push(quiet);
    audited.push(busy);
    audits.push({ ...audit, engineUs: busy.clickHouseUs - quiet.clickHouseUs });
    await system.allStored();
    await engines.mergesSettled();
  }
  await pipeline.drained();
  const row = `${events.toLocaleString('en')} events`;
  return [
    figureOf(
      row,
      'seconds',
      's',
      audits.map(({ ms }) => ms / 1_000),
    ),
    figureOf(
      row,
      'memory',
      'MiB',
      audits.map(({ memory }) => memory / MEBIBYTE),
      MEMORY_BAR,
    ),
    figureOf(
      row,
      'CPU ÷ that of storing',
      '',
      audits.map(({ cpuUs, engineUs }) => (cpuUs + engineUs) / storingUs),
      STORING_BAR,
    ),
    ...figuresOf(
      'acknowledged',
      alone.map(({ acknowledged }) => acknowledged),
      audited.map(({ acknowledged }) => acknowledged),
    ),
    ...figuresOf(
      'newest page',
      alone.map(({ page }) => page),
      audited.map(({ page }) => page),
    ),
  ];
}

/** @throws {VoidRun} unless everything is accounted for */
async function auditOnce(system: System, events: number): Promise<MeasuredAudit> {
  const audit = await measureAudit(system.pipeline);
  const isBalanced =
    audit.code === 0 && audit.output.includes(`${events.toLocaleString('en')} rows were accepted, and all`);
  if (!isBalanced) throw new VoidRun(`the audit ended with ${audit.code}: ${audit.output.slice(-2_000)}`);
  return audit;
}

/** Sends a load and asks for pages for some time. */
async function loadFor(system: System, durationMs: number): Promise<Beside> {
  const before = await system.cpuTimes(['ClickHouse']);
  const loading = system.load({ ...LOAD, durationMs });
  const pages: number[] = [];
  for (const endAt = performance.now() + durationMs; performance.now() < endAt; ) {
    await sleep(PAGE_MS * Math.random() * 2);
    const askedAt = performance.now();
    const { status } = await system.pipeline.get('/events?total=none');
    if (status !== 200) throw new VoidRun(`a page got ${status}`);
    pages.push(performance.now() - askedAt);
  }
  const { latencyMs } = await loading;
  const clickHouseUs = together(difference(before, await system.cpuTimes(['ClickHouse'])));
  return { acknowledged: latencyMs, page: { median: median(pages), p99: p99(pages) }, clickHouseUs };
}

function figuresOf(what: string, alone: readonly Beside['page'][], audited: readonly Beside['page'][]): Figure[] {
  return (['median', 'p99'] as const).flatMap((kind) => {
    const [without, during] = [alone, audited].map((all) => all.map((one) => one[kind])) as [number[], number[]];
    const row = `${what}, ${kind}`;
    return [
      figureOf(row, 'without an audit', 'ms', without),
      figureOf(row, 'during one', 'ms', during),
      figureOf(row, 'during ÷ without', '', quotients(during, without), kind === 'p99' ? BESIDE_BAR : undefined),
    ];
  });
}
