import { SimulatedKafka } from '../kafka/simulated-kafka.ts';
import { Network } from '../world/network.ts';
import { Random } from '../world/random.ts';
import { VirtualTime } from '../world/virtual-time.ts';
import { type IngestPlan, IngestSide } from './ingest-side.ts';

export interface IngestWorldOptions extends IngestPlan {
  readonly nodes: number;
  /** Whether ingest-api has to create the topics. */
  readonly isNew: boolean;
  /** Called with each line of the trace. */
  readonly onNote: (line: string) => void;
}

/** Clients, ingest-apis and Kafka in one simulated world. */
export class IngestWorld {
  readonly time: VirtualTime;
  readonly network: Network;
  readonly kafka: SimulatedKafka;
  readonly side: IngestSide;
  readonly #onNote: (line: string) => void;
  /** What is wrong, if anything. */
  violation: string | undefined;

  constructor(options: IngestWorldOptions) {
    const { seed, nodes, partitions, batchBytesMax, isNew } = options;
    this.#onNote = options.onNote;
    this.time = new VirtualTime(new Random(seed, 'programs').next);
    this.network = new Network(this.time, new Random(seed, 'network'));
    const random = new Random(seed, 'servers');
    this.kafka = new SimulatedKafka({ time: this.time, network: this.network, random, nodes, topics: {} });
    this.side = new IngestSide(this, options);
    if (isNew) return;
    const { topics, clockTopic } = this.side;
    for (const topic of Object.values(topics)) {
      for (let partition = 0; partition < partitions; partition += 1) {
        const log = this.kafka.addLog(topic, partition, (partition % nodes) + 1);
        log.batchBytesMax = batchBytesMax ?? log.batchBytesMax;
      }
    }
    this.kafka.addLog(clockTopic, 0, 1);
  }

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
