import { configSchema, type IngestConfig } from '@sluice/ingest-api/config';
import { clockTopicName, topicNames } from '@sluice/shared/kafka/topics';
import type { SimulatedKafka } from '../kafka/simulated-kafka.ts';
import type { Network } from '../world/network.ts';
import { Random } from '../world/random.ts';
import type { VirtualTime } from '../world/virtual-time.ts';
import { Client } from './client.ts';
import { IngestPlace } from './ingest-place.ts';
import { IngestOracle } from './oracle.ts';

/** What the producing side needs of its world. */
export interface ProducingWorld {
  readonly time: VirtualTime;
  readonly network: Network;
  readonly kafka: SimulatedKafka;
  readonly violation: string | undefined;
  note(line: string): void;
  report(violation: string): void;
}

export interface IngestPlan {
  readonly seed: number;
  readonly ingests: number;
  readonly clients: number;
  readonly partitions: number;
  /** How long a request waits for Kafka, in milliseconds. */
  readonly produceTimeoutMs: number;
  /** How large an event is at most, in bytes. */
  readonly eventBytesMax: number;
  /** The largest record batch that topics take, in bytes; undefined: Kafka's default. */
  readonly batchBytesMax: number | undefined;
}

export const TOPIC_PREFIX = 'sim.';

/** The workspaces; the key of each is its name. */
const WORKSPACES = ['w1', 'w2'];

/** Clients and ingest-apis, and what they are promised. */
export class IngestSide {
  readonly world: ProducingWorld;
  readonly config: IngestConfig;
  readonly topics: { readonly events: string; readonly entities: string };
  readonly clockTopic: string;
  readonly keys: ReadonlyMap<string, string> = new Map(WORKSPACES.map((name) => [name, name]));
  readonly random: Random;
  readonly ingests: readonly IngestPlace[];
  readonly clients: readonly Client[];
  readonly oracle: IngestOracle;

  constructor(world: ProducingWorld, plan: IngestPlan) {
    this.world = world;
    this.random = new Random(plan.seed, 'clients');
    this.config = configSchema.parse({
      KAFKA_BROKERS: 'kafka-1:9092',
      KAFKA_TOPIC_PREFIX: TOPIC_PREFIX,
      KAFKA_PARTITIONS: String(plan.partitions),
      API_KEYS_FILE: 'keys.json',
      PRODUCE_TIMEOUT_MS: String(plan.produceTimeoutMs),
    });
    this.topics = topicNames(this.config);
    this.clockTopic = clockTopicName(this.config);
    this.oracle = new IngestOracle(this);
    this.ingests = Array.from(
      { length: plan.ingests },
      (_, at) => new IngestPlace(this, `ingest ${at + 1}`, this.config),
    );
    this.clients = Array.from({ length: plan.clients }, (_, at) => {
      const workspace = WORKSPACES[at % WORKSPACES.length] as string;
      const random = new Random(plan.seed, `client ${at + 1}`);
      const refusedBytes = plan.batchBytesMax;
      return new Client(this, {
        client: `client-${at + 1}`,
        workspace,
        random,
        eventBytesMax: plan.eventBytesMax,
        refusedBytes,
      });
    });
    world.kafka.producers = this.oracle;
  }

  get isDone(): boolean {
    return this.clients.every(({ isDone }) => isDone);
  }

  /** Ends what is wrong with the processes. */
  mend(): void {
    for (const place of this.ingests) {
      place.setClock(0);
      place.thaw();
      place.start();
    }
  }

  /** Checks that everybody is idle, ready, and accepts whatever is sent. Nothing may be wrong any more. */
  async checkEnd(withinMs: number): Promise<void> {
    const { time } = this.world;
    const isWrong = () => this.world.violation !== undefined;
    if (!this.isDone) this.world.report(`requests are still not answered ${withinMs / 1_000} s after the last fault`);
    const clients = this.ingests.map((place, at) => ({
      place,
      client: this.clients[at % this.clients.length] as Client,
    }));
    for (const { place, client } of clients) {
      client.probe(place);
      await time.runUntil(time.nowMs + withinMs, () => isWrong() || client.isDone);
      if (!client.isDone) this.world.report(`${place.name} does not accept everything after the last fault`);
    }
    const ends = Promise.all(this.ingests.map((place) => place.checkEnd()));
    let isChecked = false;
    void ends.then(() => {
      isChecked = true;
    });
    await time.runUntil(time.nowMs + withinMs, () => isWrong() || isChecked);
    if (!isChecked) this.world.report('an ingest-api does not say whether it is ready');
  }

  kill(): void {
    for (const place of this.ingests) place.kill();
    for (const client of this.clients) client.kill();
  }
}
