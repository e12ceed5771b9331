import { nameOf as partitionName } from '@sluice/storage/protocol/position';
import { Keeper } from '../clickhouse/keeper.ts';
import { Replica, type ReplicaOptions } from '../clickhouse/replica.ts';
import { SimulatedClickHouse, type SimulatedClickHouseOptions } from '../clickhouse/simulated-clickhouse.ts';
import type { Tables } from '../clickhouse/tables.ts';
import type { PartitionLog } from '../kafka/partition-log.ts';
import type { Commit } from '../kafka/simulated-kafka.ts';
import { ForgottenDeletions } from '../writer/forgotten-deletions.ts';
import { Oracle } from '../writer/oracle.ts';
import type { Server } from '../writer/server.ts';
import type { World } from '../writer/world.ts';

/** On how many replicas everything has to be that is committed. */
const QUORUM = 2;

/** Within which time writers leave a replica that nothing can be stored at while it can at others, in milliseconds. */
const LEFT_MS = 90_000;

const LOOK_MS = 100;

export interface PlacedReplica {
  readonly clickhouse: SimulatedClickHouse;
  readonly oracle: Oracle;
  readonly replica: Replica;
}

interface ReplicaSetOptions extends Pick<SimulatedClickHouseOptions, 'time' | 'network' | 'random' | 'healthyMs'> {
  readonly count: number;
}

/** The replicas of a server: those that its file of servers has, and one that has died. */
export class ReplicaSet {
  readonly #world: World;
  readonly #server: Server;
  readonly keeper = new Keeper();
  readonly #placed: readonly PlacedReplica[];
  #listed: readonly PlacedReplica[];
  readonly forgotten = new ForgottenDeletions();
  /** Those without a session of Keeper for long. */
  readonly #stuck = new Set<Replica>();
  /** What the file of servers lacks, which writers read when they start. */
  #hidden: PlacedReplica | undefined;
  /** Up to which record of each log the commits are checked. */
  readonly #checked = new Map<PartitionLog, number>();

  constructor(world: World, server: Server, { count, ...common }: ReplicaSetOptions) {
    this.#world = world;
    this.#server = server;
    this.#placed = Array.from({ length: count }, (_, index) => this.#place(`${server.name}r${index + 1}`, common));
    this.#listed = this.#placed;
  }

  #place(name: string, common: Omit<ReplicaSetOptions, 'count'>): PlacedReplica {
    const oracle: Oracle = new Oracle(this.#world, this.#server, () => clickhouse);
    const onEvents: SimulatedClickHouseOptions['onEvents'] = (rows) => oracle.checkInsert(rows);
    const onRemoved: ReplicaOptions['onRemoved'] = (table, { pendingDeletions: before }) => {
      if (table !== 'pendingDeletions') return;
      this.forgotten.note(before, replica.tables.pendingDeletions);
      for (const listed of this.#listed) listed.oracle.checkForgotten();
    };
    const replica = new Replica({ ...common, name, keeper: this.keeper, onEvents, onRemoved });
    const onConflict: SimulatedClickHouseOptions['onConflict'] = (row) => oracle.reportConflict(row);
    const clickhouse = new SimulatedClickHouse({
      ...common,
      name: `ClickHouse ${name}`,
      replica,
      onEvents,
      onConflict,
    });
    return { clickhouse, oracle, replica };
  }

  /** Those in the file of servers, as it is now. */
  get listed(): readonly PlacedReplica[] {
    return this.#listed;
  }

  /** Those that writers know which start now. */
  get known(): readonly PlacedReplica[] {
    const known = this.#listed.filter((placed) => placed !== this.#hidden);
    return known.length > 0 ? known : this.#listed;
  }

  /** All writers start again with a file of servers that lacks a replica, until there are no more faults. */
  hide(placed: PlacedReplica): void {
    this.#hidden = placed;
    this.#restartWriters();
  }

  /** What each has, and had when it died. */
  get tables(): readonly Tables[] {
    return this.#placed.map(({ clickhouse }) => clickhouse.tables);
  }

  /** Whether one has died. */
  get hasDead(): boolean {
    return this.#placed.some(({ clickhouse }) => clickhouse.isGone);
  }

  /** Whether all of them have the same. */
  get isLevel(): boolean {
    return this.#listed.every(({ replica }) => this.keeper.isLevel(replica));
  }

  /** A replica dies for good, with all that only it has. */
  kill({ clickhouse }: PlacedReplica): void {
    clickhouse.stop();
    clickhouse.isGone = true;
  }

  /** The operator drops the one that has died: from Keeper, then from the file of servers. Then the writers are started again. */
  dropDead(): void {
    for (const { replica, clickhouse } of this.#placed) if (clickhouse.isGone) this.#stuck.delete(replica);
    const dead = this.#listed.filter(({ clickhouse }) => clickhouse.isGone);
    if (dead.length === 0) return;
    for (const { replica } of dead) this.keeper.drop(replica);
    this.#listed = this.#listed.filter((placed) => !dead.includes(placed));
    this.#world.note(`${dead[0]?.clickhouse.name} is dropped, and all writers start again`);
    this.#restartWriters();
  }

  #restartWriters(): void {
    for (const writer of this.#server.writers) {
      writer.kill();
      writer.start();
    }
  }

  /** Ends all that is wrong. A replica that has had no Keeper for long gets it back once no writer stores at it any more. */
  mend(): void {
    this.keeper.cut.clear();
    this.keeper.held.clear();
    for (const { replica } of this.#placed) {
      if (!this.#stuck.has(replica)) replica.setSession(true);
      replica.lagMs = 0;
      replica.losesNextAnswer = false;
      replica.keepsNextAlone = false;
      replica.onNextPart = undefined;
    }
    this.dropDead();
    if (this.#hidden) {
      this.#hidden = undefined;
      this.#restartWriters();
    }
    for (const placed of this.#listed) if (this.#stuck.has(placed.replica)) this.#mendOnceLeft(placed);
  }

  /** A replica has no session of Keeper until all faults are over, and writers have left it. Where no other one has, it gets one sooner. */
  stick({ replica }: PlacedReplica): void {
    replica.setSession(false, true);
    this.#stuck.add(replica);
  }

  /** A replica that was without Keeper for a while has it again. */
  mendSession({ replica }: PlacedReplica): void {
    if (!this.#stuck.has(replica)) replica.setSession(true);
  }

  #mendOnceLeft({ clickhouse, replica }: Omit<PlacedReplica, 'oracle'>, sinceMs = this.#world.time.nowMs): void {
    const { time } = this.#world;
    const isLeft = this.#server.writers.every((writer) => !writer.storesAt(clickhouse));
    const isAlone = this.#listed.every((one) => this.#stuck.has(one.replica));
    if (isLeft || isAlone) {
      this.#stuck.delete(replica);
      replica.setSession(true);
    } else if (time.nowMs - sinceMs < LEFT_MS)
      time.after(LOOK_MS, () => this.#mendOnceLeft({ clickhouse, replica }, sinceMs));
    else this.#world.report(`a writer goes on at ${clickhouse.name}, where nothing can be stored`);
  }

  /** Checks that everything before an offset is on enough replicas when it is committed. One that has died since then counts. */
  checkCommit(commit: Commit): void {
    const { log, offset } = commit;
    const { sent, oracle } = this.#server;
    oracle.checkOwner(commit);
    const from = this.#checked.get(log) ?? 0;
    for (const record of log.from(from)) {
      if (Number(record.offset) >= offset) break;
      for (const row of sent.rowsOf(record)) {
        const missing = this.#placed
          .map((one) => one.oracle.missing(log, record, row))
          .filter((one) => one !== undefined);
        const stored = this.#placed.length - missing.length;
        if (stored < Math.min(QUORUM, this.#listed.length))
          oracle.report(
            `offset ${offset} of ${partitionName(log)} is committed, but only on ${stored} replicas: ${missing[0]}`,
          );
      }
    }
    this.#checked.set(log, Math.max(from, offset));
  }
}
