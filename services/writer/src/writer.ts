import { connectionHint, withHint } from '@sluice/shared/base/connection-hints';
import type { Logger } from '@sluice/shared/base/log';
import { retry } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { MigrationMismatch, SchemaTooNew, TablesLost } from '@sluice/shared/clickhouse/migrate';
import { UnusableServer } from '@sluice/shared/clickhouse/one-server';
import { isShared } from '@sluice/shared/config';
import { ALL_OTHERS } from '@sluice/shared/config/retention-days';
import { recentHint } from '@sluice/shared/kafka/client';
import { ensureTopics, topicNames } from '@sluice/shared/kafka/topics';
import { describeRange } from '@sluice/shared/servers/partition-range';
import type { Server } from '@sluice/shared/servers/servers-file';
import type { Component } from '@sluice/shared/service/lifecycle';
import { Probe } from '@sluice/shared/service/probe';
import { CarriedTables } from '@sluice/storage/clickhouse/carried-tables';
import { GroupMismatch } from '@sluice/storage/clickhouse/claim-database';
import { Halts } from '@sluice/storage/clickhouse/halts';
import { readPartitions } from '@sluice/storage/clickhouse/known-partitions';
import { DatabaseMismatch, OwnDatabase } from '@sluice/storage/clickhouse/own-database';
import { groupPrefixOf, Ownership } from '@sluice/storage/clickhouse/ownership';
import { checkPartitionCount, PartitionCountMismatch } from '@sluice/storage/clickhouse/partition-count';
import { Positions } from '@sluice/storage/clickhouse/positions';
import { Replicas, ReplicaWatch } from '@sluice/storage/clickhouse/replicas';
import { readRetention, recordRetention } from '@sluice/storage/clickhouse/retention-settings';
import { SharedReplicas } from '@sluice/storage/clickhouse/shared-replicas';
import type { StoredThrough } from '@sluice/storage/kafka/lag';
import type { OwnEpoch } from '@sluice/storage/protocol/epoch';
import type { Kafka } from 'kafkajs';
import { type CarriedOptions, StagedStore } from './batch/staged-batch.ts';
import type { WriterConfig } from './config.ts';
import { ColdEvents } from './erasure/cold-events.ts';
import { Erasure } from './erasure/erasure.ts';
import { ExpiredEvents } from './erasure/expired-events.ts';
import { FastColumns } from './erasure/fast-columns.ts';
import { LinkedVisitors } from './erasure/linked-visitors.ts';
import type { Rounds } from './erasure/rounds.ts';
import { WaitingEvents } from './erasure/waiting-events.ts';
import { BatchIntake } from './group/batch-intake.ts';
import { BatchLoop } from './group/batch-loop.ts';
import { BatchPace } from './group/batch-pace.ts';
import { BrokerLacks } from './group/broker-lacks.ts';
import { DeadLetterAlarm } from './group/dead-letter-alarm.ts';
import { ForeignCommits } from './group/foreign-commits.ts';
import { GroupConsumer, isMemberOf } from './group/group-consumer.ts';
import { PartitionKeeper } from './group/partition-keeper.ts';
import { Watchdog } from './group/watchdog.ts';
import type { WriterMetrics } from './metrics.ts';
import { StoringProgress } from './storing-progress.ts';
import { StreamOrder } from './stream-order.ts';

/** What a writer reaches a server of ClickHouse by. */
export interface WriterClients {
  readonly client: ClickHouseClient;
  /** For statements that may take long: its requests time out after `ERASURE_TIMEOUT_MS`. */
  readonly erasureClient: ClickHouseClient;
}

export interface WriterDependencies extends WriterClients {
  readonly kafka: Kafka;
  /** Clients of the other replicas of the database. Default: the server has its rows alone. */
  readonly others?: readonly WriterClients[] | undefined;
  /** Brings the tables up to date. @throws ClickHouse's errors, and those of `migrate` */
  readonly migrate: () => Promise<unknown>;
  /** Returns how far the group has stored the log; `undefined` while that is not known. */
  readonly storedThrough: () => Promise<StoredThrough | undefined>;
  /** Whose database it is, replicas without a name; undefined without a file of servers. */
  readonly server?: Pick<Server, 'name' | 'partitions'> | undefined;
  /** Puts the storage policy with a cold volume in force for the events. */
  readonly useColdPolicy: () => Promise<void>;
  readonly logger: Logger;
  readonly metrics: WriterMetrics;
  /** Unique among all writers, past ones included. */
  readonly writerId: string;
  /** Called with an error that only a restart can resolve. */
  readonly fail: (error: unknown) => void;
}

/**
 * After how many session timeouts without a sign of life kafkajs is given up. The loss of a broker silences it for ten
 * to twenty seconds, more on a busy machine.
 */
const SILENT_SESSIONS_MAX = 6;

/** After how many session timeouts a replica of ClickHouse is given up that is read-only while another one is not. */
const STUCK_SESSIONS_MAX = 2;

/** How often the progress of one server is recorded, and that of each of several, in milliseconds. */
const PROGRESS_MS = 10_000;
const PROGRESS_MS_OF_SEVERAL = 2_000;

/** What trying again does not resolve: the writer ends, and its error says what to do. */
const NEEDS_OPERATOR = [
  ...[MigrationMismatch, SchemaTooNew, TablesLost, UnusableServer],
  ...[GroupMismatch, DatabaseMismatch, PartitionCountMismatch],
];

/** Builds the writer: what it consists of, and how its components are connected. */
export function createWriter(config: WriterConfig, deps: WriterDependencies): Writer {
  const { kafka, client, erasureClient, server, logger, metrics, writerId, fail } = deps;
  const others = deps.others?.map((one) => one.client);
  const common = { client, groupId: config.KAFKA_GROUP_ID, statementTimeoutMs: config.STATEMENT_TIMEOUT_MS };
  const { groupId } = common;
  const { shared, replicas, replicaWatch } = replicasOf(config, deps);
  const ownership = new Ownership({
    everywhere: shared,
    client,
    groupId,
    writerId,
    // A member keeps its id when it joins a later generation, so the generation is compared as well.
    isMember: async (memberId, generation) =>
      (await isMemberOf(kafka, groupId, memberId)) && group.assignment?.generation === generation,
  });
  const positions = new Positions({ ...common, ownership });
  const halts = new Halts(client, groupId);
  const readKnown = (server: string | undefined) => readPartitions(client, groupId, server);
  const owner = { group: groupId, server: server?.name ?? '', partitions: describeRange(server?.partitions) };
  const database = new OwnDatabase(client, owner, others, shared !== undefined);
  const isOwn = (id: string) => database.isOwn(id);
  const foreignCommits = new ForeignCommits({ kafka, groupId, topics: Object.values(topicNames(config)), isOwn });
  const lacks = new BrokerLacks(logger);
  const keeper = new PartitionKeeper({
    ...{ kafka, groupId, ownership, positions, halts, readKnown, logger, metrics },
    ...{ database, replicas, foreignCommits, lacks, range: server?.partitions },
  });
  const alarm = new DeadLetterAlarm({
    onChange(raised) {
      metrics.deadLetterAlarm.set(raised ? 1 : 0);
      if (raised) logger.error(raised);
    },
  });
  const carried: CarriedOptions | undefined = shared && {
    endStatements: (prefix, endedAtMs, signal) => shared.end({ prefix }, signal, endedAtMs),
  };
  const store = new StagedStore({ ...common, ownership, carried });
  const bytesMax = config.BATCH_BYTES_MAX;
  const pace = new BatchPace({ ageMs: config.BATCH_AGE_MS, bytesMax });
  const batches = new BatchLoop({ store, positions, replicas, groupId, bytesMax, pace, alarm, metrics, logger });
  const intake = new BatchIntake({
    ...{ kafka, keeper, batches, lacks, metrics, logger },
    partitionCount: config.KAFKA_PARTITIONS,
  });
  const ofErasure = { client: erasureClient, others: deps.others?.map((one) => one.erasureClient) };
  const ofReplicas = { replicas: replicas ?? shared, useTables: shared && CarriedTables.use };
  const ofRounds = { ...ofErasure, ...ofReplicas, writerId, logger, failures: metrics.erasureFailures };
  const rounds: readonly Rounds[] = [
    ...[Erasure, ExpiredEvents, FastColumns].map((Type) => new Type(config, ofRounds)),
    new ColdEvents(config, { ...ofRounds, usePolicy: deps.useColdPolicy }),
    new WaitingEvents(config, { ...ofRounds, kafka }),
    new LinkedVisitors(config, { ...ofRounds, kafka }),
  ];
  const epoch = () => group.assignment?.epoch;
  const ofOneWriter = [...rounds, ...recordersOf(config, deps, { ownership, replicas, database, epoch })];
  const silenceMs = SILENT_SESSIONS_MAX * config.KAFKA_SESSION_TIMEOUT_MS;
  const watchdog = new Watchdog(silenceMs, () => {
    fail(new Error(`kafkajs has not fetched, joined or sent a heartbeat for ${silenceMs} ms`));
  });
  const group = new GroupConsumer({
    config,
    kafka,
    logger,
    watchdog,
    onAssigned(assignment, consumer) {
      const isOwner = assignment.partitions[topicNames(config).events]?.includes(0) ?? false;
      for (const work of ofOneWriter) work.setOwner(isOwner);
      keeper.takeOver(assignment, consumer).catch(fail);
    },
    onEnded() {
      for (const work of ofOneWriter) work.setOwner(false);
    },
    onOutOfRange(assignment, consumer, partition) {
      keeper.reopen(assignment, consumer, partition).catch(fail);
    },
    store: (batch, assignment, consumer) => intake.store(batch, assignment, consumer),
    rest: (signal) => pace.rest(signal),
    commitMetadata: () => database.id,
    fail,
  });
  return new Writer(config, deps, { database, group, keeper, alarm, lacks, ofOneWriter, watchdog, replicaWatch });
}

interface KnownReplicas {
  /** Those that share the rows behind one address. */
  readonly shared: SharedReplicas | undefined;
  /** Those that copy their rows to one another. */
  readonly replicas: Replicas | undefined;
  readonly replicaWatch: ReplicaWatch | SharedReplicas | undefined;
}

/** Returns what knows of the other replicas of the database; nothing where a server has its rows alone. */
function replicasOf(
  config: WriterConfig,
  { client, others: given, writerId, fail }: WriterDependencies,
): KnownReplicas {
  const common = { groupPrefix: groupPrefixOf(config.KAFKA_GROUP_ID), statementTimeoutMs: config.STATEMENT_TIMEOUT_MS };
  if (isShared(config)) {
    const shared = new SharedReplicas({ client, ...common });
    return { shared, replicas: undefined, replicaWatch: shared };
  }
  const others = given?.map((one) => one.client);
  if (!others) return { shared: undefined, replicas: undefined, replicaWatch: undefined };
  const ofReplicas = { own: client, others };
  const stuckMs = STUCK_SESSIONS_MAX * config.KAFKA_SESSION_TIMEOUT_MS;
  return {
    shared: undefined,
    replicas: new Replicas({ ...ofReplicas, ...common, writerId }),
    replicaWatch: new ReplicaWatch({ ...ofReplicas, stuckMs, onStuck: fail }),
  };
}

interface RecorderDependencies {
  readonly ownership: Ownership;
  readonly replicas: Replicas | undefined;
  readonly database: OwnDatabase;
  /** As in {@link StreamOrder}. */
  readonly epoch: () => OwnEpoch | undefined;
}

/** Returns what records how far the writers are, for readers. */
function recordersOf(
  { KAFKA_GROUP_ID: groupId }: WriterConfig,
  { client, others, server, storedThrough, logger, metrics }: WriterDependencies,
  { ownership, replicas, database, epoch }: RecorderDependencies,
): readonly (StoringProgress | StreamOrder)[] {
  const ofOrder = { client, groupId, ownership, logger, epoch, recorded: metrics.orderRecorded };
  const order = others && new StreamOrder({ ...ofOrder, others: () => database.others });
  const onStored = order && ((throughMs: number) => order.noteStored(throughMs));
  // Which of several servers is read depends on it; where there is one, alerts alone do.
  const intervalMs = server || others ? PROGRESS_MS_OF_SEVERAL : PROGRESS_MS;
  const progress = new StoringProgress({ client, groupId, replicas, storedThrough, onStored, logger, intervalMs });
  return order ? [progress, order] : [progress];
}

interface WriterComponents {
  readonly database: OwnDatabase;
  readonly group: GroupConsumer;
  readonly keeper: PartitionKeeper;
  readonly alarm: DeadLetterAlarm;
  readonly lacks: BrokerLacks;
  /** What one writer of the group does in the background: the one that owns the first partition of the events. */
  readonly ofOneWriter: readonly (Rounds | StoringProgress | StreamOrder)[];
  readonly watchdog: Watchdog;
  /** Undefined where a server has its rows alone. */
  readonly replicaWatch: ReplicaWatch | SharedReplicas | undefined;
}

/** Moves rows from Kafka into ClickHouse. It commits an offset only when every row before it is stored. */
export class Writer implements Component {
  readonly name = 'writer';
  readonly #config: WriterConfig;
  readonly #deps: WriterDependencies;
  readonly #components: WriterComponents;
  readonly #probe: Probe;
  readonly #stopping = new AbortController();
  #starting: Promise<void> | undefined;
  /** What to check, since Kafka or ClickHouse could not be used at the start. */
  #hint: string | undefined;

  constructor(config: WriterConfig, deps: WriterDependencies, components: WriterComponents) {
    this.#config = config;
    this.#deps = deps;
    this.#components = components;
    const ping = async () => {
      const result = await deps.client.ping();
      if (!result.success) throw result.error;
    };
    const whyUnreachable = (error: unknown) => withHint('ClickHouse cannot be reached', connectionHint(error));
    this.#probe = new Probe(whyUnreachable, 2_000, ping);
  }

  /** Begins to consume in the background, as soon as Kafka and ClickHouse can be reached. */
  async start(): Promise<void> {
    this.#starting ??= this.#consumeOnceReachable();
    for (const work of this.#components.ofOneWriter) void work.start();
    this.#components.replicaWatch?.start();
  }

  async stop(): Promise<void> {
    const { watchdog, ofOneWriter, group, replicaWatch } = this.#components;
    watchdog.stop();
    this.#stopping.abort(new Error('the writer is stopping'));
    await this.#starting;
    await replicaWatch?.stop();
    await Promise.all(ofOneWriter.map((work) => work.stop()));
    await group.stop();
    const clients = [this.#deps, ...(this.#deps.others ?? [])].flatMap(({ client, erasureClient }) => [
      client,
      erasureClient,
    ]);
    await Promise.all(clients.map((one) => one.close()));
  }

  /** Returns what keeps the writer from storing, each as a short phrase. Empty when it is ready. */
  async missing(): Promise<string[]> {
    const { keeper, alarm } = this.#components;
    const phrases = [await this.#probe.check(), this.#missingOwnership(), ...keeper.missing(), alarm.raised()];
    return phrases.filter((phrase) => phrase !== undefined);
  }

  /** What the brokers lack, and what does not hold then: a sentence for each. */
  get warnings(): readonly string[] {
    return this.#components.lacks.warnings;
  }

  #missingOwnership(): string | undefined {
    const { assignment } = this.#components.group;
    if (!assignment) {
      return withHint('no Kafka partitions are assigned yet', this.#hint ?? recentHint(this.#deps.kafka));
    }
    return assignment.epoch ? undefined : 'the assigned partitions are not taken over yet';
  }

  async #consumeOnceReachable(): Promise<void> {
    const { logger, fail } = this.#deps;
    const { signal } = this.#stopping;
    await retry(() => this.#consume(), {
      firstMs: 200,
      maxMs: 5_000,
      signal,
      onFailure: (error) => {
        if (NEEDS_OPERATOR.some((type) => error instanceof type)) throw error;
        this.#hint = connectionHint(error);
        logger.warn(
          { reason: (error as Error).message, hint: this.#hint },
          'Kafka or ClickHouse cannot be reached yet; retrying',
        );
      },
    }).catch((error) => {
      if (!signal.aborted) fail(error);
    });
  }

  async #consume(): Promise<void> {
    await this.#deps.migrate();
    const server = await this.#components.database.claim();
    // While it is, the writer does not join its group, which a copy needs to have no members.
    await this.#components.database.requireFilled(server);
    await this.#recordRetention();
    const others = this.#deps.others?.map(({ client }) => client);
    await checkPartitionCount(this.#deps.client, this.#config, others);
    await ensureTopics(this.#deps.kafka, this.#config);
    await this.#components.group.start();
    this.#hint = undefined;
  }

  async #recordRetention(): Promise<void> {
    const { client, logger } = this.#deps;
    const { EVENTS_RETENTION_DAYS: days } = this.#config;
    const before = (await readRetention(client)).find(({ workspace }) => workspace === ALL_OTHERS)?.days ?? 0;
    if (before !== (days ?? 0))
      logger.warn({ before, days: days ?? 0 }, 'the retention of events changes (0: for ever)');
    await recordRetention(client, ALL_OTHERS, days);
  }
}
