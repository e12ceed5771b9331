import { clockTopicName, topicNames } from '@sluice/shared/kafka/topics';
import type { WriterConfig } from '@sluice/writer/config';
import { SimulatedClickHouse } from '../clickhouse/simulated-clickhouse.ts';
import { SimulatedKafka } from '../kafka/simulated-kafka.ts';
import { Network } from '../world/network.ts';
import { Random } from '../world/random.ts';
import { VirtualTime } from '../world/virtual-time.ts';
import { Oracle } from './oracle.ts';
import { type Haste, WriterPlace, writerConfig } from './simulated-writer.ts';

export interface WorldOptions extends Haste {
  readonly seed: number;
  readonly partitions: number;
  readonly nodes: number;
  readonly writers: number;
  /** Called with each line of the trace. */
  readonly onNote: ((line: string) => void) | undefined;
}

/** Kafka, ClickHouse and writers in one simulated world. */
export class World {
  readonly time: VirtualTime;
  readonly network: Network;
  readonly kafka: SimulatedKafka;
  readonly clickhouse: SimulatedClickHouse;
  readonly config: WriterConfig;
  readonly topics: { readonly events: string; readonly entities: string };
  readonly writers: readonly WriterPlace[];
  readonly oracle: Oracle;
  readonly #onNote: WorldOptions['onNote'];

  constructor({ seed, partitions, nodes, writers, isHasty, erases, onNote }: WorldOptions) {
    // Streams of their own, so that a fault more or less changes as little else as possible.
    const ofServers = new Random(seed, 'servers');
    this.#onNote = onNote;
    this.config = writerConfig(partitions, { isHasty, erases });
    this.topics = topicNames(this.config);
    this.time = new VirtualTime(new Random(seed, 'programs').next);
    this.network = new Network(this.time, new Random(seed, 'network'));
    this.oracle = new Oracle(this);
    this.clickhouse = new SimulatedClickHouse({
      ...{ time: this.time, network: this.network, random: ofServers },
      onEvents: (rows) => this.oracle.checkInsert(rows),
      onConflict: (row) => this.oracle.reportConflict(row),
    });
    this.kafka = new SimulatedKafka({
      ...{ time: this.time, network: this.network, random: ofServers, nodes },
      topics: {
        [this.topics.events]: partitions,
        [this.topics.entities]: partitions,
        [clockTopicName(this.config)]: 1,
      },
      onCommit: (log, offset, assignment) => this.oracle.checkCommit(log, offset, assignment),
    });
    this.writers = Array.from({ length: writers }, (_, index) => new WriterPlace(this, `writer ${index + 1}`));
  }

  /** Adds a line to the trace. */
  note(line: string): void {
    this.#onNote?.(`${(this.time.nowMs / 1_000).toFixed(3).padStart(9)} s  ${line}`);
  }

  get violation(): string | undefined {
    return this.oracle.violation;
  }

  report(violation: string): void {
    this.oracle.report(violation);
  }
}
