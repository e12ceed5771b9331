import type { ClickHouseSettings } from '@clickhouse/client';
import { pinnedSettings, replicatedSettings, sharedSettings } from '@sluice/shared/clickhouse/settings';
import { isInRange, type PartitionRange } from '@sluice/shared/servers/partition-range';
import { nameOf } from '@sluice/storage/protocol/position';
import type { WriterConfig } from '@sluice/writer/config';
import { Balancer } from '../clickhouse/balancer.ts';
import { SimulatedClickHouse } from '../clickhouse/simulated-clickhouse.ts';
import type { ConsumerGroup } from '../kafka/consumer-group.ts';
import type { PartitionLog } from '../kafka/partition-log.ts';
import type { Commit } from '../kafka/simulated-kafka.ts';
import { type PlacedReplica, ReplicaSet } from '../replicated/replica-set.ts';
import { SharedSet } from '../shared/shared-set.ts';
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
  /** How many replicas it has. Default: it has its rows alone. */
  readonly replicas?: number;
  /** How many replicas share its rows behind one address. Default: it is no such service. */
  readonly sharing?: number;
  /** For how long Keeper keeps a session of these that is lost, in milliseconds. */
  readonly keeperMs?: number;
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
  readonly #alone: SimulatedClickHouse;
  /** What it consists of, where its rows are on several replicas. */
  readonly replicas: ReplicaSet | undefined;
  /** What it consists of, where replicas share its rows. */
  readonly shared: SharedSet | undefined;
  /** What its writers reach it by, where that is not the server itself. */
  readonly balancer: Balancer | undefined;
  readonly writers: readonly WriterPlace[];
  readonly #oracle: Oracle;

  constructor(world: World, random: Random, options: ServerOptions) {
    const { name, writers, healthyMs, range, isBalanced, replicas, sharing, keeperMs } = options;
    const { config, time, network } = world;
    const { KAFKA_GROUP_ID } = config;
    this.#world = world;
    this.name = name;
    this.range = range;
    this.sent = world.sent.ofRange(range);
    this.config = {
      ...config,
      ...(name !== '' && { KAFKA_GROUP_ID: `${KAFKA_GROUP_ID}.${name}` }),
      ...(sharing !== undefined && { CLICKHOUSE_REPLICATION: 'shared' }),
    };
    this.#oracle = new Oracle(world, this, () => this.shared?.clickhouses[0] ?? this.#alone);
    const common = { healthyMs, time, network, random };
    this.#alone = new SimulatedClickHouse({
      ...{ ...common, name: name === '' ? 'ClickHouse' : `ClickHouse ${name}` },
      onEvents: (rows) => this.#oracle.checkInsert(rows),
      onConflict: (row) => this.#oracle.reportConflict(row),
    });
    this.replicas = replicas === undefined ? undefined : new ReplicaSet(world, this, { ...common, count: replicas });
    this.shared =
      sharing === undefined
        ? undefined
        : new SharedSet({ ...common, count: sharing, spares: 1, sessionMs: keeperMs, oracle: this.#oracle });
    if (isBalanced) {
      // Nobody reads what it stores.
      const unread = { onEvents: () => undefined, onConflict: () => undefined };
      const second = new SimulatedClickHouse({ ...common, name: 'the second server', ...unread });
      this.balancer = new Balancer([this.#alone, second], random);
    }
    const ofServer = name === '' ? '' : ` of ${name}`;
    this.writers = Array.from(
      { length: writers },
      (_, index) => new WriterPlace(world, this, `writer ${index + 1}${ofServer}`),
    );
  }

  /** What knows which deletions were forgotten, where there are several replicas. */
  get forgetting(): Pick<ReplicaSet, 'forgotten' | 'tables'> | undefined {
    return this.replicas ?? this.shared;
  }

  /** Its replicas, or what stands alone. */
  get all(): readonly Pick<PlacedReplica, 'clickhouse' | 'oracle'>[] {
    if (this.shared) return this.shared.clickhouses.map((clickhouse) => ({ clickhouse, oracle: this.#oracle }));
    return this.replicas?.listed ?? [{ clickhouse: this.#alone, oracle: this.#oracle }];
  }

  /** The first of its replicas, where there are several. */
  get clickhouse(): SimulatedClickHouse {
    return this.all[0]?.clickhouse ?? this.#alone;
  }

  get oracle(): Oracle {
    return this.all[0]?.oracle ?? this.#oracle;
  }

  /** The settings of everything that its writers send to it. */
  get settings(): ClickHouseSettings {
    if (this.shared) return { ...pinnedSettings, ...sharedSettings };
    if (!this.replicas) return pinnedSettings;
    return { ...pinnedSettings, ...replicatedSettings(this.all.length, this.config.STATEMENT_TIMEOUT_MS) };
  }

  checkCommit(commit: Commit): void {
    if (this.replicas) this.replicas.checkCommit(commit);
    else this.#oracle.checkCommit(commit);
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

/** Returns how far a log is stored: on all replicas, where there are several. */
export function storedOf({ all }: Server, log: PartitionLog): number {
  return Math.min(...all.map(({ clickhouse }) => clickhouse.tables.positions.get(nameOf(log))?.nextOffset ?? 0));
}

/** Returns how far a log is committed. */
export function committedOf({ group }: Server, log: PartitionLog): number {
  return group.offsets.get(nameOf(log)) ?? 0;
}
