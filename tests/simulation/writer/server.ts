import { isInRange, type PartitionRange } from '@sluice/shared/servers/partition-range';
import { nameOf } from '@sluice/storage/protocol/position';
import type { WriterConfig } from '@sluice/writer/config';
import { Balancer } from '../clickhouse/balancer.ts';
import { SimulatedClickHouse } from '../clickhouse/simulated-clickhouse.ts';
import type { ConsumerGroup } from '../kafka/consumer-group.ts';
import type { PartitionLog } from '../kafka/partition-log.ts';
import type { Random } from '../world/random.ts';
import { Oracle } from './oracle.ts';
import type { SentRows } from './sent-rows.ts';
import { WriterPlace } from './simulated-writer.ts';
import type { World } from './world.ts';

export interface ServerOptions {
  /** Empty where there is one server. */
  readonly name: string;
  readonly writers: number;
  /** How long a statement takes at most while nothing is wrong, in milliseconds. Default: that of a quick machine. */
  readonly healthyMs?: number;
  /** The partitions that it stores. Default: all. */
  readonly range?: PartitionRange;
  /** Whether a second server may get behind its address. Default: no. */
  readonly isBalanced?: boolean;
}

/** One ClickHouse server, and the writers that store what Kafka has into it, as a consumer group of their own. */
export class Server {
  readonly #world: World;
  readonly name: string;
  readonly range: PartitionRange | undefined;
  /** What producers sent to its partitions. */
  readonly sent: SentRows;
  /** The configuration of its writers. */
  readonly config: WriterConfig;
  readonly clickhouse: SimulatedClickHouse;
  /** What its writers reach it by, where that is not the server itself. */
  readonly balancer: Balancer | undefined;
  readonly writers: readonly WriterPlace[];
  readonly oracle: Oracle;

  constructor(world: World, random: Random, { name, writers, healthyMs, range, isBalanced }: ServerOptions) {
    const { config, time, network } = world;
    const { KAFKA_GROUP_ID } = config;
    this.#world = world;
    this.name = name;
    this.range = range;
    this.sent = world.sent.ofRange(range);
    this.config = name === '' ? config : { ...config, KAFKA_GROUP_ID: `${KAFKA_GROUP_ID}.${name}` };
    this.oracle = new Oracle(world, this);
    const common = { healthyMs, time, network, random };
    this.clickhouse = new SimulatedClickHouse({
      ...{ ...common, name: name === '' ? 'ClickHouse' : `ClickHouse ${name}` },
      onEvents: (rows) => this.oracle.checkInsert(rows),
      onConflict: (row) => this.oracle.reportConflict(row),
    });
    if (isBalanced) {
      // Nobody reads what it stores.
      const unread = { onEvents: () => undefined, onConflict: () => undefined };
      const second = new SimulatedClickHouse({ ...common, name: 'the second server', ...unread });
      this.balancer = new Balancer([this.clickhouse, second], random);
    }
    const ofServer = name === '' ? '' : ` of ${name}`;
    this.writers = Array.from(
      { length: writers },
      (_, index) => new WriterPlace(world, this, `writer ${index + 1}${ofServer}`),
    );
  }

  /** Whether it stores what is in a log. */
  stores({ partition }: Pick<PartitionLog, 'partition'>): boolean {
    return isInRange(this.range, partition);
  }

  /** As its coordinator in Kafka keeps it. */
  get group(): ConsumerGroup {
    return this.#world.kafka.group(this.config.KAFKA_GROUP_ID);
  }
}

/** Returns how far a log is stored. */
export function storedOf({ clickhouse }: Server, log: PartitionLog): number {
  return clickhouse.tables.positions.get(nameOf(log))?.nextOffset ?? 0;
}

/** Returns how far a log is committed. */
export function committedOf({ group }: Server, log: PartitionLog): number {
  return group.offsets.get(nameOf(log)) ?? 0;
}
