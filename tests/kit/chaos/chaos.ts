import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { until } from '@sluice/shared/testing/until';
import { compareEvents, type KnownLoad } from '../audited-events.ts';
import { ownKafka } from '../engines.ts';
import { startKafkaProxy } from '../kafka-proxy.ts';
import { groupOf, startLoad } from '../load.ts';
import { type Pipeline, startPipeline } from '../pipeline.ts';
import { type FailedRead, type Readers, startReaders } from '../readers.ts';
import type { EventPage } from '../records.ts';
import type { ServiceName } from '../service.ts';
import type { Delivery } from '../verify-delivery.ts';
import { createDelays, type Delays, INGEST_SEND, WRITERS_FETCH } from './delays.ts';
import { freezeFor } from './freeze-for.ts';
import { createLogCutter, type LogCutter } from './log-cutter.ts';
import { startOneServer } from './one-server.ts';
import { RECEIVERS_ENV, type Receipt, startReceivers } from './receivers.ts';
import {
  describeFault,
  type FaultKind,
  groupsOf,
  isOneServer,
  ONE_SERVER,
  type PlannedFault,
  planFaults,
  type Topology,
} from './schedule.ts';
import { startSeveralServers } from './several-servers.ts';
import { closeSlots, openSlots, type Slot, urlsOf } from './slots.ts';
import type { AuditedServer, ChaosStore, Comparison, Surroundings } from './store.ts';

export interface ChaosOptions {
  /** The same seed makes the same faults and the same load. */
  readonly seed: number;
  /** How long faults happen. */
  readonly minutes: number;
  /** Kinds of faults that are left out. The others keep their times. */
  readonly without?: readonly FaultKind[];
  /** The ClickHouse servers. Default: one. */
  readonly topology?: Topology;
  readonly onProgress: (line: string) => void;
}

export interface ChaosOutcome {
  readonly delivery: Delivery;
  readonly faults: readonly PlannedFault[];
  /** How many pages were read meanwhile. */
  readonly pages: number;
  /** How many acknowledged events were cut off Kafka's logs before they were stored. */
  readonly cutOff: number;
  /** The log of each service, by its name. */
  readonly logs: ReadonlyMap<string, string>;
  /** What became of the events of webhooks. With several servers there are none. */
  readonly receipts: readonly Receipt[];
  /** What the audits of all servers found at the end, and where they did not agree with what clients were told. */
  readonly unbalanced: readonly string[];
  /** What several servers showed; absent with one. */
  readonly ofServers?: Comparison & Dashboards & { readonly deletions: number };
}

/** What requests of dashboards got meanwhile. */
export interface Dashboards {
  readonly answered: number;
  readonly slowestMs: number;
  /** The requests that did not get 200, although each range of partitions had a server that could be read. */
  readonly failed: readonly FailedRead[];
}

/** Begins the names of the topics, of the writers' group, and of the users and organizations of the load. */
const NAME = 'chaos';

const BROKERS = 3;

/** Clients at once, and how long each waits between two requests at most, in milliseconds. */
const CLIENTS = 6;
const PAUSE_MS = 60;

/** A dashboard asks for the newest page, a user, numbers over time and a total. */
const DASHBOARD = [
  '/events?limit=20',
  '/events?userId=u0&limit=5',
  '/users/u0',
  '/events/series?startDate=2026-01-01T00:00:00Z&groupBy=event',
  '/events?limit=0',
];
const DASHBOARD_PAUSE_MS = 200;

/**
 * Runs the whole system under load while processes are killed, stopped and frozen and responses get lost, as the seed
 * plans it. Then lets everything recover, and compares what clients were told with what is stored and served.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosOutcome> {
  const { seed, minutes, without = [], topology = ONE_SERVER, onProgress } = options;
  const plan = planFaults(seed, minutes, topology).filter(({ kind }) => !without.includes(kind));
  for (const fault of plan) onProgress(describeFault(fault));
  const serverCount = topology.shards * topology.mirrors;
  onProgress(
    `Starting three brokers, ${serverCount === 1 ? 'ClickHouse' : `${serverCount} ClickHouse servers`} and the services`,
  );
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await makeTempDir());
  const delays = createDelays();
  const ports = await findFreePorts(BROKERS);
  const kafkaProxies = await Promise.all(ports.map((port, broker) => startKafkaProxy(port, delays.decide(broker))));
  for (const kafkaProxy of kafkaProxies) cleanup.use(kafkaProxy);
  const advertisedPorts = kafkaProxies.map(({ port }) => port);
  const kafka = cleanup.use(await ownKafka({ brokers: BROKERS, dataDir: folder.path, ports, advertisedPorts }));
  const store = cleanup.use(
    isOneServer(topology)
      ? await startOneServer(seed)
      : await startSeveralServers(topology, join(folder.path, 'servers')),
  );
  const { clickhouseUrl, servers } = store;
  const pipeline = cleanup.use(
    await startPipeline({
      ...{ kafkaBrokers: kafka.brokers, clickhouseUrl, name: NAME, env: { KAFKA_REPLICATION_FACTOR: '3' } },
      // On a busy machine a server may take more than a minute to catch up, while its mirror is away.
      ...(servers
        ? { servers, envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } } }
        : { envOf: { 'query-api': { ...WEBHOOKS_ACCOUNT, ...RECEIVERS_ENV } } }),
    }),
  );
  const slots = cleanup.adopt(await openSlots(pipeline, topology), closeSlots);
  const urls = (name: ServiceName) => urlsOf(slots, name);

  const dashboards = servers && cleanup.use(await startDashboards(pipeline, () => urls('query-api')));

  const receivers = servers ? undefined : cleanup.use(await startReceivers(pipeline, seed, groupOf(NAME, 0)));

  onProgress(`${minutes} minutes of load with ${plan.length} faults`);
  const load = cleanup.use(
    startLoad({ pipeline, urls: () => urls('ingest-api'), concurrency: CLIENTS, pauseMs: PAUSE_MS, seed, name: NAME }),
  );
  const reading = cleanup.use(startReading(pipeline.key, () => urls('query-api')));
  const failed = new AbortController();
  cleanup.defer(() => failed.abort());
  const startedAt = performance.now();
  const logCutter = createLogCutter(kafka, folder.path, pipeline, seed);
  const breaker = createBreaker({
    ...{ pipeline, slots, store, kafka, delays, logCutter, signal: failed.signal, onProgress },
  });
  await Promise.all(
    plan.map(async (fault) => {
      await delay(fault.atMs, undefined, { signal: failed.signal });
      onProgress(`${describeFault(fault)}  (${load.acceptedSoFar()} events accepted)`);
      await breaker(fault);
    }),
  );
  await delay(Math.max(0, minutes * 60_000 - (performance.now() - startedAt)));
  onProgress('All faults are over: waiting until everything is stored');
  for (const [name, slot] of slots) {
    await until(`${name} to be ready`, async () => {
      // A writer may have ended itself after it was frozen: another has taken its place then.
      const response = await fetch(`${slot.service.url}/readyz`).catch(() => undefined);
      await response?.arrayBuffer();
      // A log that was cut off may be noticed only now.
      if (!response?.ok) await logCutter.resume();
      return response?.ok;
    });
  }
  const tally = await load.stop();
  const { pages, doubled } = await reading.stop();
  const requests = dashboards && (await endOf(dashboards, topology));
  const { delivery, comparison } = await store.verify({ pipeline, slots }, tally, logCutter.cutOff);
  const receipts = (await receivers?.verify(tally, logCutter.cutOff)) ?? [];
  const { cutOff, gone } = logCutter;
  const unbalanced: string[] = [];
  for (const server of store.audited(pipeline)) {
    onProgress(`Auditing ${server.name}`);
    unbalanced.push(...(await audit(server, { database: pipeline.database, tally, cutOff, gone })));
  }
  const deletions = tally.operations.filter(
    ({ action: { kind }, outcome }) => kind === 'delete' && outcome === 'accepted',
  );
  return {
    delivery: { ...delivery, doubled: [...delivery.doubled, ...doubled] },
    faults: plan,
    pages,
    cutOff: [...tally.accepted.keys()].filter((key) => logCutter.cutOff.has(key)).length,
    receipts,
    unbalanced,
    logs: new Map([...slots].map(([name, { log, service }]) => [name, log + service.log()])),
    ...(comparison && requests && { ofServers: { ...comparison, ...requests, deletions: deletions.length } }),
  };
}

/** Returns what an audit finds, a sentence for each row, and where it does not agree with what clients were told. */
async function audit(
  { name, audited, clickhouseUrl }: AuditedServer,
  load: Omit<KnownLoad, 'clickhouseUrl'>,
): Promise<readonly string[]> {
  const { books, different } = await compareEvents(audited, { ...load, clickhouseUrl });
  const listed = books.differences.map(({ difference, key, topic, partition, offset, line, detail }) => {
    return `${difference}: ${key} at ${topic}/${partition}@${offset}:${line}: ${detail}`;
  });
  return [...listed, ...different].map((text) => `${name}: ${text}`);
}

interface Breakable extends Surroundings {
  readonly store: ChaosStore;
  readonly kafka: LocalKafka;
  readonly delays: Delays;
  readonly logCutter: LogCutter;
}

/** Returns a function that makes a fault happen, and resolves when it is over. */
function createBreaker(breakable: Breakable): (fault: PlannedFault) => Promise<void> {
  const { slots, store, kafka, delays, logCutter, signal } = breakable;
  const last = (ms: number) => delay(ms, undefined, { signal });

  async function disturbService(slot: Slot, { kind, lastsMs }: PlannedFault): Promise<void> {
    const { service } = slot;
    if (kind === 'freeze') return await freezeFor(service.pid, lastsMs, signal);
    slot.down = last(lastsMs);
    await (kind === 'kill' ? service.kill9() : service.stop());
    await slot.down;
  }

  async function disturbBroker(broker: number, { kind, lastsMs }: PlannedFault): Promise<void> {
    if (kind === 'freeze') return await freezeFor(kafka.pids[broker], lastsMs, signal);
    if (kind === 'delay fetch' || kind === 'delay produce') {
      delays.delayNext(broker, kind === 'delay fetch' ? WRITERS_FETCH : INGEST_SEND, lastsMs);
      return await last(lastsMs);
    }
    await kafka.kill9(broker);
    await last(lastsMs);
    await kafka.restart(broker);
  }

  async function disturbLogs({ lastsMs }: PlannedFault): Promise<void> {
    await logCutter.cut();
    // The log grows again, and the writers find out.
    await last(lastsMs);
    await logCutter.resume();
  }

  async function disturb(fault: PlannedFault): Promise<void> {
    const { target } = fault;
    const slot = slots.get(target);
    if (slot) await disturbService(slot, fault);
    else if (target === 'clickhouse' || target.startsWith('server')) await store.disturb(fault, breakable);
    else if (target === 'kafka logs') await disturbLogs(fault);
    else await disturbBroker(Number(target.slice('kafka '.length)) - 1, fault);
  }

  const disturbed = new Map<string, Promise<void>>();
  return async (fault) => {
    // On a busy machine a broker may take longer to be back than was planned: the next fault waits for it.
    const groups = groupsOf(fault);
    const now = Promise.all(groups.map((group) => disturbed.get(group))).then(() => disturb(fault));
    for (const group of groups) disturbed.set(group, now);
    await now;
  };
}

/** Asks for what a dashboard shows, all the time. */
async function startDashboards(pipeline: Pipeline, urls: () => readonly string[]): Promise<Readers> {
  await pipeline.submit({ foreignUserGroupId: 'g', foreignUserId: 'u0', events: [{ event: 'first' }] });
  for (const path of DASHBOARD) {
    await until(`200 for ${path}`, async () => (await pipeline.get(path)).status === 200);
  }
  return startReaders({ pipeline, urls, paths: DASHBOARD, pauseMs: DASHBOARD_PAUSE_MS });
}

/** Without mirrors, requests fail while a server is away. */
async function endOf(dashboards: Readers, { mirrors }: Topology): Promise<Dashboards> {
  const failed = await dashboards.stop();
  return {
    answered: dashboards.answeredSoFar(),
    slowestMs: dashboards.slowestMs(),
    failed: failed.filter(({ status }) => mirrors > 1 || status !== 503),
  };
}

interface Reading extends AsyncDisposable {
  /** How many pages were read, and the events that a page showed twice. */
  stop(): Promise<{ readonly pages: number; readonly doubled: readonly string[] }>;
}

/** Reads the newest page again and again. */
function startReading(key: string, urls: () => readonly string[]): Reading {
  const doubled = new Set<string>();
  const stopping = new AbortController();
  let pages = 0;

  async function read(url: string): Promise<void> {
    const response = await fetch(`${url}/events?limit=500&total=none`, {
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(10_000),
    });
    if (!response.ok) return;
    const { results } = (await response.json()) as EventPage;
    pages += 1;
    const seen = new Set<string>();
    for (const { uuid, timestamp, userId } of results) {
      // Beside an event of a user who is just being deleted, the same one may show that was sent again for somebody else.
      const event = `${uuid}@${Date.parse(timestamp)} of ${userId}`;
      if (seen.has(event)) doubled.add(event);
      seen.add(event);
    }
  }

  async function run(): Promise<void> {
    for (let turn = 0; !stopping.signal.aborted; turn += 1) {
      const targets = urls();
      // query-api or ClickHouse may be away.
      await read(targets[turn % targets.length] as string).catch(() => undefined);
      await delay(500, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  const running = run();

  async function stop() {
    stopping.abort();
    await running;
    return { pages, doubled: [...doubled] };
  }

  return {
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}
