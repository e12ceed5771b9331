import { setTimeout as delay } from 'node:timers/promises';
import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { ownClickHouse, ownKafka } from '../support/engines.ts';
import { freeze } from '../support/freeze.ts';
import { judge, type Verdict } from '../support/judge.ts';
import { startLoad } from '../support/load.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { startProxy } from '../support/proxy.ts';
import { seededRandom } from '../support/random.ts';
import type { EventPage } from '../support/records.ts';
import { type Service, type ServiceName, until } from '../support/service.ts';
import type { Fate } from '../support/tcp-proxy.ts';
import { describeFault, groupOf, type PlannedFault, planFaults, type Target } from './schedule.ts';

export interface ChaosOptions {
  /** Decides what goes wrong, when, and what is submitted. */
  readonly seed: number;
  /** How long things go wrong. */
  readonly minutes: number;
  readonly onProgress: (line: string) => void;
}

export interface ChaosOutcome {
  readonly verdict: Verdict;
  readonly faults: number;
  /** How many pages were read meanwhile. */
  readonly pages: number;
  /** What each service has logged, by its name. */
  readonly logs: ReadonlyMap<string, string>;
}

/** Clients at once, and how long each waits between two requests at most, in milliseconds. */
const CLIENTS = 6;
const PAUSE_MS = 60;

/** How long each service may take to be ready when all faults are over, in milliseconds. */
const RECOVERY_MS = 60_000;

/** How many services run besides the first of each. */
const MORE: readonly ServiceName[] = ['ingest-api', 'writer', 'writer', 'query-api'];

/** Of the answers of ClickHouse that are disturbed, one in so many does not come through. */
const ANSWERS_PER_LOSS = 15;

/** A place for a service, where one is started again whenever it ends, as a supervisor does. */
interface Slot {
  service: Service;
  /** What has been logged by services that ended. */
  log: string;
  /** Not started again before this is over. */
  down: Promise<void>;
}

/**
 * Runs the whole system under load while processes are killed, stopped and frozen and answers get lost, as planned by
 * the seed; then lets everything recover, and compares what clients were told with what is stored and served.
 */
export async function runChaos({ seed, minutes, onProgress }: ChaosOptions): Promise<ChaosOutcome> {
  const plan = planFaults(seed, minutes);
  for (const fault of plan) onProgress(describeFault(fault));
  onProgress('Starting three brokers, ClickHouse and the services');
  await using cleanup = new AsyncDisposableStack();
  const kafka = cleanup.use(await ownKafka({ brokers: 3 }));
  const clickhouse = cleanup.use(await ownClickHouse());
  let fate: Fate = 'deliver';
  const fateRandom = seededRandom(seed + 1);
  const proxy = cleanup.use(
    await startProxy(clickhouse.url, () => (fateRandom() * ANSWERS_PER_LOSS < 1 ? fate : 'deliver')),
  );
  const pipeline = cleanup.use(
    await startPipeline({
      kafkaBrokers: kafka.brokers,
      clickhouseUrl: proxy.url,
      name: 'chaos',
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
  const breaker = createBreaker({ slots, kafka, clickhouse, signal: failed.signal }, (next) => {
    fate = next;
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
    await until(`${name} to be ready`, RECOVERY_MS, async () => {
      // A writer may have ended itself after it was frozen: another has taken its place then.
      const response = await fetch(`${slot.service.url}/readyz`).catch(() => undefined);
      await response?.arrayBuffer();
      return response?.ok;
    });
  }
  const tally = await load.stop();
  const { pages, doubled } = await reading.stop();
  const verdict = await judge(pipeline, clickhouse.url, tally);
  return {
    verdict: { ...verdict, doubled: [...verdict.doubled, ...doubled] },
    faults: plan.length,
    pages,
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
  /** Nothing is broken, or started again, any more. */
  readonly signal: AbortSignal;
}

/** Gives what makes a fault happen, and resolves when it is over. */
function createBreaker(
  { slots, kafka, clickhouse, signal }: Breakable,
  setFate: (fate: Fate) => void,
): (fault: PlannedFault) => Promise<void> {
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
    setFate(kind === 'cut answers' ? 'cut' : 'stall');
    await last(lastsMs);
    setFate('deliver');
  }

  async function disturb(fault: PlannedFault): Promise<void> {
    const { target } = fault;
    const slot = slots.get(target);
    if (slot) await disturbService(slot, fault);
    else if (target === 'clickhouse') await disturbClickHouse(fault);
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
