import { randomUUID } from 'node:crypto';
import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { QUORUM } from '@sluice/shared/clickhouse/settings';
import type { Component } from '@sluice/shared/service/lifecycle';
import type { Ownership } from '@sluice/storage/clickhouse/ownership';
import type { Place } from '@sluice/storage/clickhouse/replicas';
import { STATEMENTS } from '@sluice/storage/clickhouse/statements';
import {
  type BlockRange,
  type BlockRanges,
  blocksOf,
  inAtLeast,
  inBoth,
  NO_BLOCKS,
  rangesOf,
  union,
  upToHighest,
  without,
} from '@sluice/storage/protocol/block-ranges';
import type { OwnEpoch } from '@sluice/storage/protocol/epoch';

/** How often it is looked for new blocks, in milliseconds. */
const LOOK_MS = 500;

/** How long a replica may take to say what it has, or to take a record, in milliseconds: others wait no longer for it. */
const ANSWER_MS_MAX = 3_000;

/** How many records are copied at once to a replica that lacks them: they are part of the address of a request. */
const COPIED_MAX = 200;

/** For how long records are copied before the others are told again what they have reached, in milliseconds. */
const COPY_MS = 1_000;

/** How old a record is for which nobody looks any more, in milliseconds: replicas remove records after eight days. */
const FORGOTTEN_MS = 7 * 86_400_000;

/** How many numbers are told apart of blocks that a replica lacks. */
const MISSING_MAX = 100;

/** By how much two readings of when a server was started may differ, in seconds: both of its parts are rounded. */
const START_SECONDS_OFF = 1;

export interface StreamOrderOptions {
  readonly client: ClickHouseClient;
  /** The other replicas. */
  readonly others: () => readonly Place[];
  /** The epoch in which this writer owns its partitions; undefined while it does not. */
  readonly epoch: () => OwnEpoch | undefined;
  readonly groupId: string;
  readonly ownership: Pick<Ownership, 'queryIdPrefix'>;
  readonly logger: Logger;
  /** Notes when it was last recorded. */
  readonly recorded: { note(): void; forget(): void };
}

/** Some blocks that got a number together. */
interface OrderRecord {
  readonly number: number;
  readonly ranges: readonly BlockRange[];
}

/** What a replica has said of itself. */
interface Look {
  readonly blocks: BlockRanges;
  /** When it was started by its own clock, in seconds since 1970. */
  readonly startedAt: number;
  /** The last record that it has; 0: it lacks the one that it had. */
  readonly newest: number;
}

/** Blocks that a replica may lack, and the number that they got, or a lower one. */
interface MissingBlocks {
  readonly number: number;
  readonly blocks: BlockRanges;
}

/** What is known of a replica. */
interface KnownReplica extends Place {
  /** The last record that it has. */
  newest: number;
  /** As its last look said. */
  startedAt: number;
  /** The recorded blocks that it may lack; 'any' since it was started, until all of its blocks were looked at. */
  missing: readonly MissingBlocks[] | 'any';
  /** What was told it last that it has reached. */
  told: number;
  /** Until when it has everything, and what was told it last of that. */
  throughMs: number;
  toldThroughMs: number;
  /** What it lacks of what any had once, and until when it has everything when it has that. */
  awaited: { readonly throughMs: number; readonly blocks: BlockRanges } | undefined;
}

/** What replicas that answered have together. */
interface Whole {
  readonly everywhere: BlockRanges;
  readonly throughMs: number;
}

/** What has been recorded, as far as its owner knows. */
interface Order {
  readonly epoch: OwnEpoch;
  readonly replicas: readonly KnownReplica[];
  /** The last number that any block got. */
  number: number;
  /** The number of the last record, and of the one before it; 0: there is none. */
  newest: number;
  before: number;
  /** The last record, where this owner has made it: it may not be stored yet. */
  last: OrderRecord | undefined;
  /** All blocks that got any number. */
  recorded: BlockRanges;
}

/**
 * Gives the blocks of replicated events the order in which streams send them: each gets a number once it is on two replicas, and those that come
 * later get a higher one. Then each replica is told which number it has reached: the highest one up to which it has all blocks. One writer of the
 * group does it: the one that owns the first partition of the events.
 *
 * What is on two replicas stays, and what a part of one replica covers never comes as a part of its own any more: ClickHouse would remove it.
 */
export class StreamOrder implements Component {
  readonly name = 'order of streams';
  readonly #options: StreamOrderOptions;
  readonly #stopping = new AbortController();
  #isOwner = false;
  #order: Order | undefined;
  #throughMs = 0;
  #isFailing = false;
  /** The replicas that have not taken something. */
  readonly #refusing = new Set<string>();
  #running: Promise<void> | undefined;

  constructor(options: StreamOrderOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#running ??= this.#run();
  }

  setOwner(isOwner: boolean): void {
    this.#isOwner = isOwner;
  }

  /** Notes until when everything is stored that Kafka had appended before, in milliseconds since 1970. */
  noteStored(throughMs: number): void {
    this.#throughMs = throughMs;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await sleep(LOOK_MS, signal);
      if (!signal.aborted) await this.#takeTurn();
    }
  }

  async #takeTurn(): Promise<void> {
    const epoch = this.#isOwner ? this.#options.epoch() : undefined;
    if (!epoch) {
      this.#order = undefined;
      this.#options.recorded.forget();
      return;
    }
    try {
      // Whoever owned the partition before may have recorded something.
      if (this.#order?.epoch !== epoch) this.#order = await this.#begin(epoch);
      await this.#goOn(this.#order);
      this.#options.recorded.note();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing)
        this.#options.logger.warn(
          { reason: (error as Error).message },
          'recording the order of streams failed, so streams, webhooks and alerts wait; retrying',
        );
      this.#isFailing = true;
    }
  }

  /**
   * Finds out what is recorded. The epoch is recorded at each replica, so nothing is added by older owners. All have to answer: one alone may
   * have the last record.
   */
  async #begin(epoch: OwnEpoch): Promise<Order> {
    const { client, others } = this.#options;
    const replicas = [{ client, server: epoch.server }, ...others()].map(
      (place): KnownReplica => ({ ...place, newest: 0, startedAt: 0, ...NOTHING_TOLD }),
    );
    const looks = await Promise.all(replicas.map((replica) => this.#look(replica, NO_BLOCKS)));
    for (const [index, replica] of replicas.entries()) if (looks[index]) noteLook(replica, looks[index]);
    const reached = await Promise.all(replicas.map((replica) => this.#readReached(replica)));
    const start = reached.reduce<OrderRecord | undefined>(
      (most, one) => (one && one.number > (most?.number ?? 0) ? one : most),
      undefined,
    );
    const most = replicas.reduce((one, other) => (other.newest > one.newest ? other : one));
    const { newest } = most;
    const number = start?.number ?? 0;
    const order: Order = { epoch, replicas, number, newest, before: 0, last: undefined, recorded: NO_BLOCKS };
    if (!start && newest === 0) {
      // Streams begin after what is there by now.
      order.number = Date.now();
      order.recorded = union(...looks.map(({ blocks }) => blocks));
      const beginning = [{ number: order.number, ranges: rangesOf(order.recorded) }];
      await Promise.all(replicas.map((replica) => this.#insert(replica, epoch, beginning, 0)));
      return order;
    }
    const later: BlockRange[] = [];
    for (let after = order.number; ; ) {
      const records = await this.#readRecords(most, after);
      later.push(...records.flatMap(({ ranges }) => ranges));
      order.number = records.at(-1)?.number ?? order.number;
      if (records.length < COPIED_MAX) break;
      after = order.number;
    }
    // What is behind all parts is gone for good; or ClickHouse counts anew, and what comes is new.
    const there = upToHighest(union(...looks.map(({ blocks }) => blocks)));
    order.recorded = inBoth(union(blocksOf(start?.ranges ?? []), blocksOf(later)), there);
    return order;
  }

  async #goOn(order: Order): Promise<void> {
    const { replicas } = order;
    // Replicas have removed it, or will soon.
    if (order.newest < Date.now() - FORGOTTEN_MS) Object.assign(order, { newest: 0, before: 0, last: undefined });
    // Before it is looked what is there: all that was appended by then is.
    const throughMs = this.#throughMs;
    const known = knownEverywhere(order);
    const answers = await Promise.allSettled(replicas.map((replica) => this.#look(replica, known)));
    const answered = replicas.flatMap((replica, index) => {
      const answer = answers[index];
      return answer?.status === 'fulfilled' ? [{ replica, look: answer.value }] : [];
    });
    const toTell = answered.filter(({ replica, look }) => noteLook(replica, look));
    const quorum = Math.min(QUORUM, replicas.length);
    if (answered.length < quorum) throw new Error(`${answered.length} of ${replicas.length} replicas answer`);
    const blocks = answered.map(({ look }) => look.blocks);
    const responding = answered.map(({ replica }) => replica);
    const level = await this.#record(order, responding, without(inAtLeast(quorum, blocks), order.recorded));
    const behind = responding.filter(({ newest }) => newest < order.newest);
    await Promise.all(behind.map((replica) => this.#try(replica, () => this.#copy(level, replica, order.epoch))));
    // A record that is at one replica alone may be lost with it.
    if (responding.filter(({ newest }) => newest >= order.newest).length < quorum)
      throw new Error(`fewer than ${quorum} replicas have the last record`);
    // Where so few do not answer, one that does has each block that was recorded; what none of these has is gone.
    const isWhole = replicas.length - answered.length < quorum;
    const all = isWhole ? { everywhere: union(...blocks), throughMs } : undefined;
    for (const { replica, look } of toTell) noteBlocks(replica, look, { order, known, all });
    await Promise.all(toTell.map(({ replica }) => this.#try(replica, () => this.#tell(order, replica))));
  }

  /** Gives blocks the next number, if there are any. Returns a replica that has all records. */
  async #record(order: Order, replicas: readonly KnownReplica[], blocks: BlockRanges): Promise<KnownReplica> {
    const level = await this.#storeLast(order, replicas);
    const ranges = rangesOf(blocks);
    if (ranges.length === 0) return level;
    order.before = order.newest;
    // It may be stored also when that fails: then it stays what it is.
    order.last = { number: Math.max(order.number + 1, Date.now()), ranges };
    order.number = order.last.number;
    order.newest = order.number;
    order.recorded = union(order.recorded, blocks);
    for (const replica of order.replicas)
      if (replica.missing !== 'any')
        replica.missing = [...withFewNumbers(replica.missing), { number: order.number, blocks }];
    return await this.#storeLast(order, replicas);
  }

  /**
   * Makes sure that the last record is stored at a replica, and returns that.
   *
   * @throws {Error} when no replica has those before, or none of these takes it
   */
  async #storeLast(order: Order, replicas: readonly KnownReplica[]): Promise<KnownReplica> {
    const { newest, before, last, epoch } = order;
    const level = replicas.find((replica) => replica.newest >= newest);
    if (level) return level;
    let failure = new Error('no replica that answers has the last record');
    if (!last) throw failure;
    for (const replica of replicas.filter((one) => one.newest >= before)) {
      try {
        await this.#insert(replica, epoch, [last]);
        replica.newest = newest;
        return replica;
      } catch (error) {
        failure = error as Error;
      }
    }
    throw failure;
  }

  /** Tells a replica what it has reached, if that is more than it was told. */
  async #tell(order: Order, replica: KnownReplica): Promise<void> {
    if (replica.missing === 'any') return;
    const missing = Math.min(...replica.missing.map(({ number }) => number));
    const number = Math.min(missing - 1, replica.newest < order.newest ? replica.newest : order.number);
    const { throughMs } = replica;
    const told = Math.max(replica.told, number);
    // Nothing below the first number was told anybody.
    if (told <= 0 || (told === replica.told && throughMs <= replica.toldThroughMs)) return;
    const ranges = rangesOf(order.recorded);
    await this.#insert(replica, order.epoch, [{ number: told, ranges }], throughMs);
    replica.told = told;
    replica.toldThroughMs = throughMs;
  }

  /** Adds to a replica records that it lacks, in their order: all, or those that are added in some time. */
  async #copy(from: KnownReplica, to: KnownReplica, epoch: OwnEpoch): Promise<void> {
    const { signal } = this.#stopping;
    const untilMs = performance.now() + COPY_MS;
    while (!signal.aborted && performance.now() < untilMs) {
      const records = await this.#readRecords(from, to.newest);
      if (records.length > 0) await this.#insert(to, epoch, records);
      to.newest = records.at(-1)?.number ?? to.newest;
      if (records.length < COPIED_MAX) return;
    }
  }

  /** What a replica does not take is tried again in the next turn. */
  async #try({ server }: KnownReplica, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#refusing.delete(server);
    } catch (error) {
      if (!this.#refusing.has(server))
        this.#options.logger.warn(
          { replica: server, reason: (error as Error).message },
          'a replica does not take the order of streams, so those there wait; retrying',
        );
      this.#refusing.add(server);
    }
  }

  async #look({ client, server, newest }: KnownReplica, known: BlockRanges): Promise<Look> {
    const query_params = { ...columnsOf(rangesOf(known)), after: newest, server };
    const [row] = await this.#read<{ parts: BlockRange[]; started_at: number; newest: number }>(
      client,
      'look-at-blocks',
      query_params,
    );
    if (!row) throw new Error('ClickHouse has returned no row of its blocks');
    return { blocks: blocksOf(row.parts), startedAt: row.started_at, newest: row.newest };
  }

  async #readReached({ client }: Place): Promise<OrderRecord | undefined> {
    const [row] = await this.#read<StoredRecord>(client, 'read-reached', {});
    return row && recordOf(row);
  }

  async #readRecords({ client }: Place, after: number): Promise<readonly OrderRecord[]> {
    const rows = await this.#read<StoredRecord>(client, 'read-records', { after, limit: COPIED_MAX });
    return rows.map(recordOf);
  }

  /** @param throughMs given where it is what a replica has reached */
  async #insert(
    { client, server, startedAt }: KnownReplica,
    epoch: OwnEpoch,
    records: readonly OrderRecord[],
    throughMs?: number,
  ): Promise<void> {
    const { groupId, ownership } = this.#options;
    const { name, sql } = STATEMENTS['record-order'];
    const columns = records.map(({ ranges }) => columnsOf(ranges));
    const query_params = {
      ...{ group: groupId, ...epoch, server },
      numbers: records.map(({ number }) => number),
      records: records.map(({ number }) => (throughMs === undefined ? number : 0)),
      throughs: records.map(() => throughMs ?? 0),
      started_at: throughMs === undefined ? 0 : startedAt,
      partitions: columns.map(({ partitions }) => partitions),
      firsts: columns.map(({ firsts }) => firsts),
      lasts: columns.map(({ lasts }) => lasts),
    };
    const query_id = `${ownership.queryIdPrefix(epoch)}-order/${name}/${randomUUID()}`;
    const clickhouse_settings = { max_execution_time: ANSWER_MS_MAX / 1_000 };
    await inTime((abort_signal) =>
      client.command({ query: sql, query_id, query_params, clickhouse_settings, abort_signal }),
    );
  }

  async #read<Row>(
    client: ClickHouseClient,
    name: 'look-at-blocks' | 'read-reached' | 'read-records',
    query_params: Record<string, unknown>,
  ): Promise<readonly Row[]> {
    return await inTime(async (abort_signal) => {
      const query = STATEMENTS[name].sql;
      const result = await client.query({ query, query_params, format: 'JSONEachRow', abort_signal });
      return await result.json<Row>();
    });
  }
}

interface StoredRecord {
  readonly number: number;
  readonly partitions: readonly number[];
  readonly firsts: readonly number[];
  readonly lasts: readonly number[];
}

function recordOf({ number, partitions, firsts, lasts }: StoredRecord): OrderRecord {
  return {
    number,
    ranges: partitions.map((partition, index): BlockRange => [partition, firsts[index] ?? 0, lasts[index] ?? 0]),
  };
}

function columnsOf(ranges: readonly BlockRange[]) {
  return {
    partitions: ranges.map(([partition]) => partition),
    firsts: ranges.map(([, first]) => first),
    lasts: ranges.map(([, , last]) => last),
  };
}

/** Returns the blocks that no replica need be asked about. */
function knownEverywhere({ recorded, replicas }: Order): BlockRanges {
  const missing: BlockRanges[] = [];
  for (const replica of replicas) {
    if (replica.missing === 'any') return NO_BLOCKS;
    missing.push(...replica.missing.map(({ blocks }) => blocks));
  }
  return without(recorded, union(...missing));
}

/** Returns the same where it has few numbers: a replica that is away for long lacks any number of them, and needs the lowest one alone. */
function withFewNumbers(missing: readonly MissingBlocks[]): readonly MissingBlocks[] {
  const [first] = missing;
  if (!first || missing.length < MISSING_MAX) return missing;
  return [{ number: first.number, blocks: union(...missing.map(({ blocks }) => blocks)) }];
}

/** What is known of a replica that was started just now: it may lack what it had. */
const NOTHING_TOLD = { missing: 'any', told: 0, throughMs: 0, toldThroughMs: 0, awaited: undefined } as const;

/** Returns whether the look shows all that is to be known; where the replica was started again, the next look is at all of its blocks. */
function noteLook(replica: KnownReplica, { newest, startedAt }: Look): boolean {
  const isSame = Math.abs(startedAt - replica.startedAt) <= START_SECONDS_OFF;
  Object.assign(replica, { newest, startedAt }, isSame ? {} : NOTHING_TOLD);
  return isSame;
}

/**
 * Notes what a replica lacks.
 *
 * @param known the blocks that it was not asked about
 * @param all undefined: what is missing may be elsewhere
 */
function noteBlocks(
  replica: KnownReplica,
  look: Look,
  { order, known, all }: { readonly order: Order; readonly known: BlockRanges; readonly all: Whole | undefined },
): void {
  const left = (blocks: BlockRanges) =>
    without(all ? inBoth(blocks, all.everywhere) : blocks, union(look.blocks, known));
  const missing = replica.missing === 'any' ? [{ number: 0, blocks: order.recorded }] : replica.missing;
  replica.missing = missing
    .map(({ number, blocks }) => ({ number, blocks: left(blocks) }))
    .filter(({ blocks }) => blocks.size > 0);
  const before = replica.awaited && { ...replica.awaited, blocks: left(replica.awaited.blocks) };
  const now = all && { throughMs: all.throughMs, blocks: left(all.everywhere) };
  for (const one of [before, now])
    if (one?.blocks.size === 0) replica.throughMs = Math.max(replica.throughMs, one.throughMs);
  replica.awaited = [before, now].find((one) => one && one.blocks.size > 0);
}

/** @throws {Error} when it takes too long */
async function inTime<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const [ended, late] = [new AbortController(), new AbortController()];
  const tooLate = sleep(ANSWER_MS_MAX, ended.signal).then(() => {
    late.abort();
    throw new Error('ClickHouse has not answered in time');
  });
  try {
    return await Promise.race([work(late.signal), tooLate]);
  } finally {
    tooLate.catch(() => undefined);
    ended.abort();
  }
}
