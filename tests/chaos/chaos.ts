import { setTimeout as delay } from 'node:timers/promises';
import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { until } from '@sluice/shared/testing/until';
import { ownClickHouse, ownKafka } from '../support/engines.ts';
import { freeze } from '../support/freeze.ts';
import { startKafkaProxy } from '../support/kafka-proxy.ts';
import { startLoad } from '../support/load.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { startProxy } from '../support/proxy.ts';
import { seededRandom } from '../support/random.ts';
import type { EventPage } from '../support/records.ts';
import type { Service, ServiceName } from '../support/service.ts';
import type { Fate } from '../support/tcp-proxy.ts';
import { type Delivery, verifyDelivery } from '../support/verify-delivery.ts';
import { createDelays, type Delays, INGEST_SEND, WRITERS_FETCH } from './delays.ts';
import { createLogCutter, type LogCutter } from './log-cutter.ts';
import { describeFault, type FaultKind, groupOf, type PlannedFault, planFaults, type Target } from './schedule.ts';

export interface ChaosOptions {
  /** The same seed makes the same faults and the same load. */
  readonly seed: number;
  /** How long faults happen. */
  readonly minutes: number;
  /** Kinds of faults that are left out. The others keep their times. */
  readonly without?: readonly FaultKind[];
  readonly onProgress: (line: string) => void;
}

export interface ChaosOutcome {
  readonly delivery: Delivery;
  readonly faults: number;
  /** How many pages were read meanwhile. */
  readonly pages: number;
  /** How many acknowledged events were cut off Kafka's logs before they were stored. */
  readonly cutOff: number;
  /** The log of each service, by its name. */
  readonly logs: ReadonlyMap<string, string>;
}

/** Begins the names of the topics and of the writers' group. */
const NAME = 'chaos';

const BROKERS = 3;

/** Settings of ClickHouse that change the meaning of statements that do not set them. */
const OTHER_PROFILE = {
  join_use_nulls: '1',
  transform_null_in: '1',
  group_by_use_nulls: '1',
  aggregate_functions_null_for_empty: '1',
  async_insert: '1',
  wait_for_async_insert: '0',
  max_rows_in_set: '1',
  set_overflow_mode: 'break',
  session_timezone: 'Asia/Tokyo',
};

/** Clients at once, and how long each waits between two requests at most, in milliseconds. */
const CLIENTS = 6;
const PAUSE_MS = 60;

/** How many services run besides the first of each. */
const MORE: readonly ServiceName[] = ['ingest-api', 'writer', 'writer', 'query-api'];

/** While responses of ClickHouse are disturbed, one in so many is lost. */
const RESPONSES_PER_LOSS = 15;

/** A place for a service, where one is started again whenever it ends, as a supervisor does. */
interface Slot {
  service: Service;
  /** What has been logged by services that ended. */
  log: string;
  /** Not started again before this is over. */
  down: Promise<void>;
}

/**
 * Runs the whole system under load while processes are killed, stopped and frozen and responses get lost, as the seed
 * plans it. Then lets everything recover, and compares what clients were told with what is stored and served.
 */
export async function runChaos({ seed, minutes, without = [], onProgress }: ChaosOptions): Promise<ChaosOutcome> {
  const plan = planFaults(seed, minutes).filter(({ kind }) => !without.includes(kind));
  for (const fault of plan) onProgress(describeFault(fault));
  onProgress('Starting three brokers, ClickHouse and the services');
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await makeTempDir());
  const delays = createDelays();
  const ports = await findFreePorts(BROKERS);
  const kafkaProxies = await Promise.all(ports.map((port, broker) => startKafkaProxy(port, delays.decide(broker))));
  for (const kafkaProxy of kafkaProxies) cleanup.use(kafkaProxy);
  const advertisedPorts = kafkaProxies.map(({ port }) => port);
  const kafka = cleanup.use(await ownKafka({ brokers: BROKERS, dataDir: folder.path, ports, advertisedPorts }));
  const clickhouse = cleanup.use(await ownClickHouse());
  let fate: Fate = 'deliver';
  let profile: Readonly<Record<string, string>> = {};
  const fateRandom = seededRandom(seed + 1);
  const proxy = cleanup.use(
    await startProxy(
      clickhouse.url,
      () => (fateRandom() * RESPONSES_PER_LOSS < 1 ? fate : 'deliver'),
      () => profile,
    ),
  );
  const pipeline = cleanup.use(
    await startPipeline({
      kafkaBrokers: kafka.brokers,
      clickhouseUrl: proxy.url,
      name: NAME,
      env: { KAFKA_REPLICATION_FACTOR: '3' },
    }),
  );
  const slots = cleanup.adopt(await openSlots(pipeline), closeSlots);
  const urls = (name: ServiceName) =>
    [...slots.entries()].filter(([slot]) => slot.startsWith(name)).map(([, { service }]) => service.url);

  onProgress(`${minutes} minutes of load with ${plan.length} faults`);
  const load = cleanup.use(
    startLoad({ pipeline, urls: () => urls('ingest-api'), concurrency: CLIENTS, pauseMs: PAUSE_MS, seed }),
  );
  const reading = cleanup.use(startReading(pipeline.key, () => urls('query-api')));
  const failed = new AbortController();
  cleanup.defer(() => failed.abort());
  const startedAt = performance.now();
  const logCutter = createLogCutter(kafka, folder.path, pipeline, seed);
  const breaker = createBreaker({
    ...{ slots, kafka, clickhouse, delays, logCutter, signal: failed.signal },
    setFate: (next) => {
      fate = next;
    },
    setProfile: (next) => {
      profile = next;
    },
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
  const delivery = await verifyDelivery(pipeline, clickhouse.url, tally, logCutter.cutOff);
  return {
    delivery: { ...delivery, doubled: [...delivery.doubled, ...doubled] },
    faults: plan.length,
    pages,
    cutOff: [...tally.accepted.keys()].filter((key) => logCutter.cutOff.has(key)).length,
    logs: new Map([...slots].map(([name, { log, service }]) => [name, log + service.log()])),
  };
}

async function openSlots(pipeline: Pipeline): Promise<Map<Target, Slot>> {
  const services: [ServiceName, Service][] = Object.entries(pipeline.services) as [ServiceName, Service][];
  for (const name of MORE) services.push([name, await pipeline.startAnother(name)]);
  const slots = new Map<Target, Slot>();
  for (const [name, service] of services) {
    const number = services.filter(([other]) => other === name).findIndex(([, other]) => other === service) + 1;
    const slot: Slot = { service, log: '', down: Promise.resolve() };
    slots.set(`${name} ${number}` as Target, slot);
    void supervise(slot);
  }
  return slots;
}

/** Slots that are closed have no service any more. */
const closed = new WeakSet<Slot>();

async function supervise(slot: Slot): Promise<void> {
  for (;;) {
    await slot.service.exited();
    await slot.down.catch(() => undefined);
    if (closed.has(slot)) return;
    slot.log += slot.service.log();
    slot.service = slot.service.again();
  }
}

async function closeSlots(slots: ReadonlyMap<Target, Slot>): Promise<void> {
  for (const slot of slots.values()) closed.add(slot);
  await Promise.all([...slots.values()].map(({ service }) => service.kill9()));
}

interface Breakable {
  readonly slots: ReadonlyMap<Target, Slot>;
  readonly kafka: LocalKafka;
  readonly clickhouse: LocalClickHouse;
  readonly delays: Delays;
  readonly logCutter: LogCutter;
  readonly setFate: (fate: Fate) => void;
  readonly setProfile: (settings: Readonly<Record<string, string>>) => void;
  /** Aborted when no fault may happen any more, and nothing is to be started again. */
  readonly signal: AbortSignal;
}

/** Returns a function that makes a fault happen, and resolves when it is over. */
function createBreaker(breakable: Breakable): (fault: PlannedFault) => Promise<void> {
  const { slots, kafka, clickhouse, delays, logCutter, setFate, setProfile, signal } = breakable;
  const last = (ms: number) => delay(ms, undefined, { signal });

  async function freezeFor(pid: number | undefined, lastsMs: number): Promise<void> {
    if (pid === undefined) return;
    const thaw = freeze(pid);
    await last(lastsMs).finally(thaw);
  }

  async function disturbService(slot: Slot, { kind, lastsMs }: PlannedFault): Promise<void> {
    const { service } = slot;
    if (kind === 'freeze') return await freezeFor(service.pid, lastsMs);
    slot.down = last(lastsMs);
    await (kind === 'kill' ? service.kill9() : service.stop());
    await slot.down;
  }

  async function disturbBroker(broker: number, { kind, lastsMs }: PlannedFault): Promise<void> {
    if (kind === 'freeze') return await freezeFor(kafka.pids[broker], lastsMs);
    if (kind === 'delay fetch' || kind === 'delay produce') {
      delays.delayNext(broker, kind === 'delay fetch' ? WRITERS_FETCH : INGEST_SEND, lastsMs);
      return await last(lastsMs);
    }
    await kafka.kill9(broker);
    await last(lastsMs);
    await kafka.restart(broker);
  }

  async function disturbClickHouse({ kind, lastsMs }: PlannedFault): Promise<void> {
    if (kind === 'freeze') return await freezeFor(clickhouse.pid, lastsMs);
    if (kind === 'kill') {
      await clickhouse.kill9();
      await last(lastsMs);
      return await clickhouse.restart();
    }
    if (kind === 'change profile') {
      setProfile(OTHER_PROFILE);
      await last(lastsMs);
      return setProfile({});
    }
    setFate(kind === 'cut responses' ? 'cut' : 'stall');
    await last(lastsMs);
    setFate('deliver');
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
    else if (target === 'clickhouse') await disturbClickHouse(fault);
    else if (target === 'kafka logs') await disturbLogs(fault);
    else await disturbBroker(Number(target.slice('kafka '.length)) - 1, fault);
  }

  const disturbed = new Map<string, Promise<void>>();
  return async (fault) => {
    // On a busy machine a broker may take longer to be back than was planned: the next fault waits for it.
    const group = groupOf(fault.target);
    const before = disturbed.get(group) ?? Promise.resolve();
    const now = before.then(() => disturb(fault));
    disturbed.set(group, now);
    await now;
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
    for (const { uuid, timestamp } of results) {
      const event = `${uuid}@${Date.parse(timestamp)}`;
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
