import { SimulatedKafka } from '../kafka/simulated-kafka.ts';
import { Network } from '../world/network.ts';
import { Random } from '../world/random.ts';
import { VirtualTime } from '../world/virtual-time.ts';
import { Clients } from './clients.ts';
import { Numbers } from './numbers.ts';
import { QueryApiPlace } from './query-api-place.ts';
import { Receivers } from './receiver.ts';
import { RegisterTables, type Row } from './register-tables.ts';
import { StoredEvents } from './stored-events.ts';

/** How long a statement takes at most while nothing is wrong, in milliseconds. */
const HEALTHY_MS = 20;

export interface WebhooksOptions {
  readonly seed: number;
  readonly instances: number;
  /** How long a lease is in force, in milliseconds. */
  readonly leaseMs: number;
  /** How many attempts an instance makes at once. */
  readonly perWorkspace: number;
  /** Called with each line of the trace. */
  readonly onNote: (line: string) => void;
}

/** Query-apis that store and deliver webhooks and alerts, with the ClickHouse that has their state, and receivers. */
export class WebhooksWorld {
  readonly time: VirtualTime;
  readonly network: Network;
  readonly random: Random;
  /** Has no topic: nothing here uses Kafka. */
  readonly kafka: SimulatedKafka;
  readonly tables: RegisterTables;
  readonly clickhouse: RegisterServer;
  readonly stored: StoredEvents;
  readonly numbers: Numbers;
  readonly receivers: Receivers;
  readonly clients: Clients;
  readonly places: readonly QueryApiPlace[];
  readonly leaseMs: number;
  readonly perWorkspace: number;
  readonly #onNote: (line: string) => void;
  #numbers = 0;
  /** What is wrong, if anything. */
  violation: string | undefined;

  constructor({ seed, instances, leaseMs, perWorkspace, onNote }: WebhooksOptions) {
    this.#onNote = onNote;
    this.time = new VirtualTime(new Random(seed, 'programs').next);
    this.network = new Network(this.time, new Random(seed, 'network'));
    this.random = new Random(seed, 'servers');
    const { time, network, random } = this;
    this.kafka = new SimulatedKafka({ time, network, random, nodes: 1, topics: {} });
    this.leaseMs = leaseMs;
    this.perWorkspace = perWorkspace;
    const beganMs = time.dateMs;
    this.tables = new RegisterTables(() => Math.floor((beganMs + time.nowMs) * 1_000));
    this.clickhouse = new RegisterServer(this);
    this.stored = new StoredEvents(time, network, random);
    this.numbers = new Numbers(time, network, new Random(seed, 'numbers'));
    this.receivers = new Receivers(this);
    this.clients = new Clients(this, new Random(seed, 'clients'));
    this.places = Array.from({ length: instances }, (_, index) => new QueryApiPlace(this, `query-api ${index + 1}`));
  }

  /** For how long something that was changed may go on as it was, in milliseconds: a lease, and what reads of changes may take. */
  get graceMs(): number {
    return this.leaseMs + 20_000;
  }

  nextNumber(): number {
    this.#numbers += 1;
    return this.#numbers;
  }

  /** Checks what an instance has stored. */
  checkInsert(holder: string, table: string, values: readonly Row[]): void {
    if (table === 'webhook_leases')
      for (const row of values) {
        const lease = `${row['webhook_id']} ${row['holder']}`;
        // A claim may arrive late, after that of a newer epoch.
        this.#epochs.set(lease, Math.max(Number(row['epoch']), this.#epochs.get(lease) ?? 0));
      }
    if (table !== 'webhook_states') return;
    for (const { webhook_id: id, state, reason } of values) {
      const name = this.clients.nameOf(id as string) ?? '';
      if (state === 'active') this.#activeSinceMs.set(name, this.time.nowMs);
      if (state !== 'paused' || reason === 'client') continue;
      const failedMs = this.receivers.failedAtMs.get(`${name} ${holder}`) ?? 0;
      if (failedMs < (this.#activeSinceMs.get(name) ?? 0))
        this.report(`${name} is paused (${reason}) by an attempt of before it was resumed`);
    }
  }

  /** The newest epoch that a holder has recorded of a webhook. Rows of deleted ones are removed while they are still delivered. */
  epochOf(webhook: string, holder: string): number {
    return this.#epochs.get(`${webhook} ${holder}`) ?? 0;
  }

  readonly #epochs = new Map<string, number>();

  /** When webhooks were resumed last. */
  readonly #activeSinceMs = new Map<string, number>();

  /** Adds a line to the trace. */
  note(line: string): void {
    this.#onNote(`${(this.time.nowMs / 1_000).toFixed(3).padStart(9)} s  ${line}`);
  }

  /** Notes what is wrong. */
  report(violation: string): void {
    this.note(`WRONG: ${violation}`);
    this.violation ??= violation;
  }
}

/** The ClickHouse server with what is stored of webhooks and views. A statement is done at one moment. */
export class RegisterServer {
  readonly #world: WebhooksWorld;
  readonly name = 'ClickHouse';
  isUp = true;
  /** How long a statement takes at most, in milliseconds. */
  slownessMs = HEALTHY_MS;
  /** How likely a statement fails, before it has done what it should or afterwards. */
  refusals = 0;

  constructor(world: WebhooksWorld) {
    this.#world = world;
  }

  /** Runs a statement for the process whose code is running. @throws {Error} when it fails, or no response comes in time */
  async run<Result>(what: string, timeoutMs: number, effect: (tables: RegisterTables) => Result): Promise<Result> {
    const { time, random, network, tables } = this.#world;
    const serve = async () => {
      if (!this.isUp) throw new Error('connect ECONNREFUSED');
      await time.wait(random.between(0.1, this.slownessMs));
      if (random.isTrue(this.refusals / 2)) throw new Error('MEMORY_LIMIT_EXCEEDED');
      const result = effect(tables);
      await time.wait(random.between(0.1, this.slownessMs / 2));
      if (random.isTrue(this.refusals / 2)) throw new Error('MEMORY_LIMIT_EXCEEDED');
      return result;
    };
    return await network.request(this.name, what, serve, timeoutMs);
  }

  stop(): void {
    this.isUp = false;
    this.#world.network.breakServer(this.name);
  }

  mend(): void {
    this.isUp = true;
    this.slownessMs = HEALTHY_MS;
    this.refusals = 0;
  }
}
