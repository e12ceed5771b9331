import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { CarriedTables } from '@sluice/storage/clickhouse/carried-tables';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { formSender, type SendForm } from '@sluice/storage/clickhouse/form-request';
import { asFenced, type Ownership } from '@sluice/storage/clickhouse/ownership';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import { type DeadLetter, deadLetterId } from '@sluice/storage/protocol/dead-letter';
import type { OwnEpoch } from '@sluice/storage/protocol/epoch';
import { rangesToLookUp, repeatsAmong, type StampedTimes, type Submitted } from '@sluice/storage/protocol/repeats';
import { countRows, type RowBatch } from '@sluice/storage/protocol/row-batch';
import {
  afterRefusal,
  afterStep,
  type BatchContents,
  type BatchState,
  newBatch,
  nextStep,
  type Step,
} from '@sluice/storage/protocol/steps';
import { inspectStagedRows, type StagedRows } from './inspect-staged-rows.ts';
import { isolateBadRows, isRowError } from './isolate-bad-rows.ts';
import { mayBeColdVolume, setColdEventsAside } from './set-aside.ts';
import { STATEMENTS } from './statements.ts';
import { storeFastEvents } from './store-statements.ts';

/**
 * A batch for more partitions of the table is stored without its text indexes. Each partition gets a part of its own,
 * and 42 of the 54 files of a part belong to the indexes; each file is synced to the disk. The next merge of the part
 * builds them. Until then queries read its few rows without an index.
 */
const INDEXED_PARTITIONS_MAX = 12;

/** The statements of a batch with fewer bytes, some 400 events, run on one thread: more cost its few rows more than they gain. */
const ONE_THREAD_BYTES_MAX = 256 * 1_024;

/** How many rows of a batch were loaded. */
export interface StoredRows {
  readonly rows: number;
  /** How many of them were left out, because their user was deleted after they were accepted. */
  readonly userDeleted: number;
  /** Whether events were left out because the same ones, or such that they repeat, are stored already. */
  readonly hasFound: boolean;
}

/** How a batch is stored whose rows travel with each statement, so that any server may run any of them. */
export interface CarriedOptions {
  /**
   * Ends the statements whose query ids begin so, at every server, and resolves when none of them is running any more. Those that begin later
   * find that their batch has ended.
   *
   * @param endedAtMs by when that was recorded, on the clock of `performance`; the same when the call is repeated
   * @param signal aborts when nobody waits for it any more
   */
  readonly endStatements: (queryIdPrefix: string, endedAtMs: number, signal?: AbortSignal) => Promise<void>;
  /** Default: sends a form with the client of the batch. */
  readonly send?: SendForm;
}

export interface StagedBatchOptions {
  readonly client: ClickHouseClient;
  /** The beginning of the query ids of this batch, and of no other one. */
  readonly queryIdPrefix: string;
  readonly statementTimeoutMs: number;
  readonly groupId: string;
  readonly epoch: OwnEpoch;
  /** A UUID, of this attempt and no other one. */
  readonly attempt: string;
  readonly carried?: CarriedOptions | undefined;
  /** Called with rows that cannot be stored, once they are in `dead_letters`. */
  readonly onDeadLetters: (deadLetters: readonly DeadLetter[]) => void;
}

/**
 * A batch on its way into ClickHouse. `protocol/steps.ts` decides which step comes next; this class runs it.
 *
 * Each attempt has a ClickHouse session of its own, or rows of its own that travel with each statement. It loads the rows, as the bytes that came
 * from Kafka, into temporary tables. SQL alone moves them from there into the tables: deletions first, then changes of users and
 * organizations, and the new events last.
 */
export class StagedBatch {
  readonly #options: StagedBatchOptions;
  #rows: RowBatch;
  #deadLetters: readonly DeadLetter[];
  #state: BatchState;
  #session: TemporaryTables | undefined;
  #staged: StagedRows | undefined;
  readonly #loaded = { events: 0, changes: 0 };
  #hasFound = false;
  #endedAtMs: number | undefined;

  constructor(batch: RowBatch, options: StagedBatchOptions) {
    this.#options = options;
    this.#rows = batch;
    this.#deadLetters = batch.deadLetters;
    this.#state = newBatch(this.#contents());
  }

  /**
   * Runs one step after the other until every row is stored, or is a dead letter.
   *
   * @throws {Fenced} when a newer epoch is recorded, or another server answers
   * @throws ClickHouse's errors; then all of the batch, some of it or nothing is stored, and it has to be ended
   */
  async store(): Promise<StoredRows> {
    for (let step = nextStep(this.#state); step !== 'commit'; step = nextStep(this.#state)) await this.#takeStep(step);
    const { events, changes } = this.#staged?.deleted ?? { events: 0, changes: 0 };
    const rows = this.#loaded.events + this.#loaded.changes;
    return { rows, userDeleted: events + changes, hasFound: this.#hasFound };
  }

  /**
   * Ends every statement of the batch and drops its temporary tables, so that its rows may be stored in other batches.
   * Kills the statements that are running, then closes the session, so that a statement which begins later finds no
   * tables. A statement that begins between the two keeps the session from closing; then this fails, and is repeated. So
   * does one that runs on while another server is told to end it.
   *
   * Where the rows travel with each statement, there is no session to be closed: the batch is recorded as ended before that.
   *
   * @param signal ends the wait for statements at other servers, where there may be such
   * @throws {Fenced} when another server answers than the one that the batch is stored at
   * @throws ClickHouse's errors; then a statement may still be running, and the call may be repeated
   */
  async end(signal?: AbortSignal): Promise<void> {
    const { client, queryIdPrefix, carried } = this.#options;
    const prefix = `${queryIdPrefix}/`;
    if (carried) {
      this.#endedAtMs ??= await this.#recordEnd();
      await carried.endStatements(prefix, this.#endedAtMs, signal);
    } else await client.command({ query: STATEMENTS['end-own-statements'].sql, query_params: { prefix } });
    await this.#closeSession().catch((error) => {
      throw asFenced(error);
    });
  }

  /** Returns when it was recorded, on the clock of `performance`. */
  async #recordEnd(): Promise<number> {
    const { client, attempt } = this.#options;
    await client.command({ query: STATEMENTS['record-ended-batch'].sql, query_params: { attempt } });
    return performance.now();
  }

  /** The server that it is stored at. */
  get server(): string {
    return this.#options.epoch.server;
  }

  async #takeStep(step: Step): Promise<void> {
    try {
      await this.#perform(step);
      this.#state = afterStep(this.#state, step);
    } catch (error) {
      if (step === 'find-repeats' && mayBeColdVolume(error) && (await this.#setColdEventsAside())) return;
      const isLoading = step === 'load-events' || step === 'load-changes';
      const isRefused = isLoading && (error instanceof NotRows || isRowError(error));
      if (!isRefused) throw asFenced(error);
      this.#state = afterRefusal(this.#state);
    }
  }

  async #perform(step: Step): Promise<void> {
    switch (step) {
      case 'isolate-bad-rows':
        return await this.#isolateBadRows();
      case 'store-dead-letters':
        return await this.#storeDeadLetters();
      case 'load-events':
        return await this.#loadEvents();
      case 'load-changes':
        return await this.#loadChanges();
      case 'store-deletions':
        return await this.#storeDeletions();
      case 'store-properties':
        if (this.#staged?.changes.properties !== 0) await this.#staging.run(STATEMENTS[step]);
        return;
      case 'store-links':
        if (this.#staged?.changes.links !== 0) await this.#staging.run(STATEMENTS[step]);
        return;
      case 'store-sightings':
        if (this.#staged?.changes.seen !== 0) await this.#staging.run(STATEMENTS[step]);
        return;
      case 'store-seen-in-changes':
        if (this.#staged?.changes.seen !== 0) await this.#runSinceDeletions(step);
        return;
      case 'find-repeats':
        return await this.#findRepeats();
      case 'store-seen-in-events':
        return await this.#runSinceDeletions(step);
      case 'store-events':
        return await this.#storeEvents();
      case 'close-session':
        return await this.#closeSession();
      case 'commit':
        return;
    }
  }

  /** The session with the temporary tables; opens one if there is none. */
  get #staging(): TemporaryTables {
    this.#session ??= this.#openSession();
    return this.#session;
  }

  #openSession(): TemporaryTables {
    const { client, queryIdPrefix, statementTimeoutMs, carried, groupId, epoch, attempt } = this.#options;
    const { events, changes } = this.#rows;
    const bytes = [...events, ...changes].reduce((sum, { value }) => sum + value.length, 0);
    const settings = bytes < ONE_THREAD_BYTES_MAX ? { max_threads: 1 } : {};
    if (!carried) return new ClickHouseSession(client, queryIdPrefix, statementTimeoutMs, settings);
    const { send = formSender(client) } = carried;
    const { incarnation, generation } = epoch;
    const own = { group: groupId, incarnation, generation, attempt };
    return new CarriedTables(send, queryIdPrefix, statementTimeoutMs, settings, own);
  }

  #contents(): BatchContents {
    return {
      hasEvents: this.#rows.events.length > 0,
      hasChanges: this.#rows.changes.length > 0,
      hasDeadLetters: this.#deadLetters.length > 0,
    };
  }

  async #closeSession(): Promise<void> {
    await this.#session?.close(this.server);
    this.#session = undefined;
  }

  async #isolateBadRows(): Promise<void> {
    await this.#closeSession();
    const events = await isolateBadRows(this.#staging, this.#rows.events);
    const changes = await isolateBadRows(this.#staging, this.#rows.changes);
    await this.#closeSession();
    const bad = [...events.deadLetters, ...changes.deadLetters];
    if (bad.length === 0) throw new Error('ClickHouse refused the batch, but takes each of its rows alone');
    this.#deadLetters = [...this.#deadLetters, ...bad];
    this.#rows = { events: events.kept, changes: changes.kept, deadLetters: [] };
    this.#state = newBatch(this.#contents());
  }

  /**
   * Takes the events out of the batch that may be stored on the cold volume, which does not answer: they become dead letters, and the
   * rest begins anew. Returns whether there are any.
   */
  async #setColdEventsAside(): Promise<boolean> {
    const { kept, deadLetters } = await setColdEventsAside(this.#staging, this.#rows.events);
    if (deadLetters.length === 0) return false;
    await this.#closeSession();
    this.#staged = undefined;
    this.#loaded.events = 0;
    this.#deadLetters = [...this.#deadLetters, ...deadLetters];
    this.#rows = { ...this.#rows, events: kept };
    this.#state = newBatch(this.#contents());
    return true;
  }

  async #storeDeadLetters(): Promise<void> {
    await storeDeadLetters(this.#staging, this.#deadLetters, this.server);
    await this.#closeSession();
    const stored = this.#deadLetters;
    this.#deadLetters = [];
    this.#options.onDeadLetters(stored);
  }

  async #loadEvents(): Promise<void> {
    this.#loaded.events = await this.#load('events');
  }

  async #loadChanges(): Promise<void> {
    this.#loaded.changes = await this.#load('changes');
  }

  /**
   * Loads the rows of a kind, and returns how many there are.
   *
   * @throws {NotRows} when ClickHouse would take other rows than the lines are. Where each line is looked at alone, such a
   * line is a dead letter, and what becomes of it must not depend on the rows beside it
   */
  async #load(kind: 'events' | 'changes'): Promise<number> {
    const messages = this.#rows[kind];
    const rows = countRows(messages);
    if (rows === undefined) throw new NotRows();
    await this.#staging.run(STATEMENTS[`stage-${kind}`]);
    const values = messages.map(({ value }) => value);
    const loaded = await this.#staging.load(STATEMENTS[`load-${kind}`], values);
    if (loaded !== undefined && loaded !== rows) throw new NotRows();
    return rows;
  }

  async #storeDeletions(): Promise<void> {
    this.#staged = await inspectStagedRows(this.#staging, this.#state, this.server);
    if (this.#staged.changes.deletions === 0) return;
    await this.#staging.run(STATEMENTS['store-identity-deletions']);
    await this.#staging.run(STATEMENTS['store-deletions']);
    await this.#staging.run(STATEMENTS['store-pending-deletions']);
  }

  /** Runs the statement of a step; where one of the users was ever deleted, the one that looks the deletions up. */
  async #runSinceDeletions(step: 'store-seen-in-changes' | 'store-seen-in-events'): Promise<void> {
    const name = this.#staged?.haveDeletions ? (`${step}-since-deletions` as const) : step;
    await this.#staging.run(STATEMENTS[name]);
  }

  async #findRepeats(): Promise<void> {
    // In a batch without changes this is the first step after loading.
    this.#staged ??= await inspectStagedRows(this.#staging, this.#state, this.server);
    const { events, keys, stamped_events, timed_events, timed_uuids } = this.#staged.events;
    const hasKeys = await this.#staging.wroteRows(STATEMENTS['find-repeats']);
    const hasUuids = await this.#findStampedRepeats(this.#staged.events);
    this.#hasFound ||= hasKeys || hasUuids;
    if (hasKeys || hasUuids) await this.#staging.run(STATEMENTS['drop-hidden-originals']);
    if (hasKeys) await this.#staging.run(STATEMENTS['drop-stored-repeats']);
    const repeatsItself = events > keys || (stamped_events > 0 && timed_events > timed_uuids);
    if (hasUuids || repeatsItself) await this.#dropRepeats();
  }

  /** Returns whether it found events that stamped ones may repeat. */
  async #findStampedRepeats(stamped: StampedTimes): Promise<boolean> {
    let found = false;
    for (const range of rangesToLookUp(stamped)) {
      const isFound = await this.#staging.wroteRows(STATEMENTS['find-stamped-repeats'], { ...range });
      found ||= isFound;
    }
    return found;
  }

  /** Drops the staged events that repeat another one of the batch, or a stored one by their uuid. */
  async #dropRepeats(): Promise<void> {
    const repeats = repeatsAmong(await this.#staging.read<Submitted>(STATEMENTS['read-possible-repeats']));
    if (repeats.length === 0) return;
    await this.#staging.run(STATEMENTS['stage-repeats']);
    const rows = repeats.map((place) => `{"place":${place}}\n`).join('');
    await this.#staging.load(STATEMENTS['load-repeats'], [Buffer.from(rows)]);
    await this.#staging.run(STATEMENTS['drop-repeats']);
  }

  /** Stores the events, and closes the session, which nothing needs any more. */
  async #storeEvents(): Promise<void> {
    const { groupId, epoch } = this.#options;
    const isScattered = (this.#staged?.events.partitions ?? 0) > INDEXED_PARTITIONS_MAX;
    const settings = isScattered ? { materialize_skip_indexes_on_insert: 0 as const } : {};
    const { statement, parameters } = storeFastEvents(this.#staged?.events.fast ?? []);
    await this.#staging.runLast(statement, { group: groupId, ...epoch, ...parameters }, settings);
    this.#session = undefined;
  }
}

/** Some lines of the batch are not one JSON object each. */
class NotRows extends Error {}

/** Inserts dead letters. A row that is a dead letter already stays one dead letter. @throws ClickHouse's errors */
async function storeDeadLetters(
  session: TemporaryTables,
  deadLetters: readonly DeadLetter[],
  server: string,
): Promise<void> {
  // Base64, because a row may hold bytes that are not UTF-8, which JSON cannot.
  const lines = deadLetters.map((deadLetter) =>
    JSON.stringify({ ...deadLetter, id: deadLetterId(deadLetter), row: deadLetter.row.toString('base64') }),
  );
  await session.load(STATEMENTS['store-dead-letters'], [Buffer.from(lines.join('\n'))], { server });
}

interface StagedStoreOptions {
  readonly client: ClickHouseClient;
  readonly ownership: Pick<Ownership, 'queryIdPrefix'>;
  readonly groupId: string;
  readonly statementTimeoutMs: number;
  /** Default: the rows are in a session. */
  readonly carried?: CarriedOptions | undefined;
}

/** Stores batches of rows in ClickHouse. */
export class StagedStore {
  readonly #options: StagedStoreOptions;

  constructor(options: StagedStoreOptions) {
    this.#options = options;
  }

  /** @param onDeadLetters is called with rows that cannot be stored, once they are in `dead_letters` */
  open(batch: RowBatch, epoch: OwnEpoch, onDeadLetters: (deadLetters: readonly DeadLetter[]) => void): StagedBatch {
    const { ownership, ...options } = this.#options;
    const attempt = randomUUID();
    const queryIdPrefix = `${ownership.queryIdPrefix(epoch)}/${attempt}`;
    return new StagedBatch(batch, { ...options, queryIdPrefix, epoch, attempt, onDeadLetters });
  }
}
