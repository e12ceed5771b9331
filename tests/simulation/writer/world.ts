import { clockTopicName, topicNames } from '@sluice/shared/kafka/topics';
import type { ChangeRow } from '@sluice/shared/rows';
import type { WriterConfig } from '@sluice/writer/config';
import type { LogRecord } from '../kafka/partition-log.ts';
import { SimulatedKafka } from '../kafka/simulated-kafka.ts';
import { Network } from '../world/network.ts';
import { Random } from '../world/random.ts';
import { VirtualTime } from '../world/virtual-time.ts';
import { Declarations } from './declarations.ts';
import { SentRows } from './sent-rows.ts';
import { Server, type ServerOptions } from './server.ts';
import { type Haste, type WriterPlace, writerConfig } from './simulated-writer.ts';

export interface WorldOptions extends Haste {
  readonly seed: number;
  readonly partitions: number;
  readonly nodes: number;
  readonly servers: readonly ServerOptions[];
  /** Called with each line of the trace. */
  readonly onNote: ((line: string) => void) | undefined;
}

/** Kafka, and ClickHouse servers with their writers, in one simulated world. All servers are fed from the same log. */
export class World {
  readonly time: VirtualTime;
  readonly network: Network;
  readonly kafka: SimulatedKafka;
  /** What all writers have in common. */
  readonly config: WriterConfig;
  readonly topics: { readonly events: string; readonly entities: string };
  readonly sent = new SentRows();
  readonly declarations: Declarations;
  readonly servers: readonly Server[];
  /** The deletions of visitors that writers have sent. */
  readonly deletedByWriters: ChangeRow[] = [];
  readonly #onNote: WorldOptions['onNote'];
  /** What is wrong, if anything. */
  violation: string | undefined;

  constructor({ seed, partitions, nodes, servers, isHasty, erases, fills = false, onNote }: WorldOptions) {
    // Streams of their own, so that a fault more or less changes as little else as possible.
    const ofServers = new Random(seed, 'servers');
    this.#onNote = onNote;
    this.config = writerConfig(partitions, { isHasty, erases, fills });
    this.topics = topicNames(this.config);
    this.declarations = new Declarations(this, new Random(seed, 'declarations'));
    this.time = new VirtualTime(new Random(seed, 'programs').next);
    this.network = new Network(this.time, new Random(seed, 'network'));
    this.kafka = new SimulatedKafka({
      ...{ time: this.time, network: this.network, random: ofServers, nodes },
      topics: {
        [this.topics.events]: partitions,
        [this.topics.entities]: partitions,
        [clockTopicName(this.config)]: 1,
      },
      onCommit: (commit) => {
        const server = this.servers.find(({ config }) => config.KAFKA_GROUP_ID === commit.groupId);
        server?.checkCommit(commit);
      },
    });
    // The load appends its rows by itself. What writers send are deletions of visitors.
    this.kafka.producers = {
      ...this.kafka.producers,
      appended: (log, records) => {
        for (const record of records) {
          const changes = changesOf(record);
          this.deletedByWriters.push(...changes);
          this.sent.add(
            log,
            record,
            changes.map((row) => ({ kind: 'change', row })),
          );
        }
      },
    };
    this.servers = servers.map((options) => new Server(this, ofServers, options));
  }

  /** All of them, of whichever server. */
  get writers(): readonly WriterPlace[] {
    return this.servers.flatMap(({ writers }) => writers);
  }

  /** Adds a line to the trace. */
  note(line: string): void {
    this.#onNote?.(`${(this.time.nowMs / 1_000).toFixed(3).padStart(9)} s  ${line}`);
  }

  /** Notes what is wrong. */
  report(violation: string): void {
    this.note(`WRONG: ${violation}`);
    this.violation ??= violation;
  }
}

function changesOf({ value }: LogRecord): ChangeRow[] {
  const lines = value.toString().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as ChangeRow);
}
