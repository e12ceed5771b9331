import { randomUUID } from 'node:crypto';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import type { PartitionRange } from '@sluice/shared/servers/partition-range';
import { refuseOtherGroups } from '@sluice/storage/clickhouse/claim-database';
import type { Admin, Kafka } from 'kafkajs';
import { Books, differencesOf, type OnRow } from './books.ts';
import { Database } from './database.ts';
import { DeletedPersons } from './deleted-persons.ts';
import { DeletionPlaces } from './deletion-places.ts';
import { countDuplicates } from './duplicates.ts';
import type { Selection } from './intake.ts';
import { type ChangeJoin, joinChanges, rejectedCallsOf } from './join-changes.ts';
import { type Candidate, type EventJoin, joinEvents, type Stray } from './join-events.ts';
import { LogIsGone, RecordReader } from './log-reader.ts';
import { Pace } from './pace.ts';
import { Pending } from './pending.ts';
import { NO_LENGTHS, type ReadRows, readPieces, SLICES } from './read-log.ts';
import { recordResult, recordStart } from './record-audit.ts';
import { REGISTER_BYTES, STORED_BYTES } from './records.ts';
import type { AuditResult, ListedDifference } from './result.ts';
import { findDeadLetters, LOOK_MAX, lookAgain, type Seen } from './second-look.ts';
import { Slices } from './slices.ts';
import { readStorageState, type StorageState } from './storage-state.ts';
import { readDeletions, readRegisters, readStoredEvents } from './stored-rows.ts';
import { judgeStrays } from './strays.ts';
import { offsetsAt, type PartitionLog, readLogs, type Topics } from './topic-logs.ts';
import { type AuditBefore, balancedThrough, CUT_NOTE, decideWindow, MARGIN_MS, type WantedWindow } from './window.ts';
import type { AuditState, WorkFolder } from './work-folder.ts';

/** How many differences are listed. */
const LISTED_MAX = 100;

/** How long before what seems to be missing is looked at once more, in milliseconds. */
const PAUSE_MS = 5_000;

export interface AuditOptions extends Selection, WantedWindow {
  readonly client: ClickHouseClient;
  readonly kafka: Kafka;
  readonly group: string;
  readonly topics: Topics;
  /** The partitions of the server; undefined: all. */
  readonly range: PartitionRange | undefined;
  readonly folder: WorkFolder;
  /** What it was asked for, as text: another one begins anew. */
  readonly command: string;
  /** How many megabytes of the log may be read in a second; 0: as many as possible. */
  readonly rate: number;
  readonly signal: AbortSignal;
  readonly nowMs: number;
  readonly onProgress: (text: string, done?: number, total?: number) => void;
  readonly onRow?: OnRow;
  /** The complete audits before; undefined: what the database has. Replicas also have those of one another, of this very audit. */
  readonly before?: readonly AuditBefore[] | undefined;
  /** Where the server is one of several replicas. */
  readonly ofReplicas?: AuditedReplicas | undefined;
}

/** What an audit has found at replicas before the one that it looks at now. */
export interface AuditedReplicas {
  readonly results: readonly AuditResult[];
  /** Whether this is the last one that was not looked at. */
  readonly isLast: boolean;
}

/** Reads the complete audits that a database has. @throws ClickHouse's errors */
export async function readAuditsBefore(client: ClickHouseClient): Promise<readonly AuditBefore[]> {
  return await new Database(client).read<AuditBefore>('audits-before', { cut: CUT_NOTE });
}

/**
 * Compares the log with the database, and records the result. When it ends before, the same call goes on where it was.
 *
 * @returns `undefined` when there is no whole hour to look at
 * @throws {Refused} when it cannot be done
 * @throws {GroupMismatch} when the database belongs to another group of writers
 * @throws kafkajs's and ClickHouse's errors
 */
export async function runAudit(options: AuditOptions): Promise<AuditResult | undefined> {
  await refuseOtherGroups(options.client, options.group);
  return await withAdmin(options.kafka, async (admin) => {
    const logs = await readLogs(admin, options.topics, options.range, options.nowMs);
    const database = new Database(options.client);
    const state = options.folder.read(options.command) ?? (await begin(admin, logs, database, options));
    if (!state) return undefined;
    try {
      return await new Audit(admin, logs, database, state, options).run();
    } catch (error) {
      // The files are not those of the state, since the machine was switched off, or the log has lost what was to be read.
      if (error instanceof RangeError || error instanceof LogIsGone) options.folder.empty();
      throw error;
    }
  });
}

/** Decides what is read, and records that the audit begins. */
async function begin(
  admin: Admin,
  logs: readonly PartitionLog[],
  database: Database,
  options: AuditOptions,
): Promise<AuditState | undefined> {
  const { folder, command, topics, nowMs } = options;
  folder.empty();
  const before = options.before ?? (await readAuditsBefore(options.client));
  const decided = decideWindow(logs, options, balancedThrough(before), nowMs);
  if (!decided) return undefined;
  const { sinceMs, untilMs } = decided.window;
  const from = await offsetsAt(admin, topics, sinceMs - MARGIN_MS);
  const pieces = logs.map(({ role, topic, partition, low, high }) => {
    const begin = from.get(`${topic}/${partition}`) ?? low;
    const first = String(begin < low || begin > high ? low : begin);
    return { role, topic, partition, from: first, to: String(high), next: first };
  });
  const state = {
    ...{ version: 1, command, id: randomUUID(), startedMs: nowMs, sinceMs, untilMs, notes: decided.notes, pieces },
    ...{ workspaces: [], eventLengths: NO_LENGTHS, changeLengths: NO_LENGTHS },
  } as const satisfies AuditState;
  folder.write(state);
  await recordStart(database, { ...options, ...state });
  return state;
}

/** One run of an audit. */
class Audit {
  readonly #admin: Admin;
  readonly #logs: readonly PartitionLog[];
  readonly #database: Database;
  readonly #state: AuditState;
  readonly #options: AuditOptions;
  readonly #pace: Pace;
  readonly #books: Books;
  readonly #notes: string[];
  readonly #listed: ListedDifference[] = [];

  constructor(
    admin: Admin,
    logs: readonly PartitionLog[],
    database: Database,
    state: AuditState,
    options: AuditOptions,
  ) {
    this.#admin = admin;
    this.#logs = logs;
    this.#database = database;
    this.#state = state;
    this.#options = options;
    this.#books = new Books(options.onRow);
    this.#pace = new Pace(options.rate, options.signal);
    this.#notes = [...state.notes];
  }

  async run(): Promise<AuditResult> {
    const { folder } = this.#options;
    const rows = await this.#readLog();
    // Before anything stored is read: what is stored by then is there.
    const storage = await this.#readStorageState();
    this.#notes.push(...storage.notes);
    const candidates = new Pending<Candidate>(folder.path, 'candidates');
    const strays = new Pending<Stray>(folder.path, 'strays');
    const days = await this.#join(rows, storage, candidates, strays);
    await this.#judgeStrays(strays, storage);
    await this.#judgeCandidates(candidates, new DeletionPlaces(rows.changes, SLICES));
    await this.#countDuplicates(days);
    for (const slices of [rows.events, rows.changes]) slices.close();
    const result = this.#result();
    await recordResult(this.#database, result, this.#options.ofReplicas?.results ?? [], this.#throughMsMax);
    folder.remove();
    return result;
  }

  /** Up to when the result may say that everything is balanced: what some replicas were not looked at for is looked at again. */
  get #throughMsMax(): number {
    const { before = [], ofReplicas } = this.#options;
    if (ofReplicas?.isLast ?? true) return Number.POSITIVE_INFINITY;
    return Math.max(this.#state.sinceMs, balancedThrough(before) ?? 0);
  }

  get #window() {
    const { sinceMs, untilMs } = this.#state;
    return { since: sinceMs * 1_000, until: untilMs * 1_000 };
  }

  async #readStorageState(): Promise<StorageState> {
    const { group, topics } = this.#options;
    return await readStorageState(this.#database, { group, topics, sinceMs: this.#state.sinceMs });
  }

  async #readLog(): Promise<ReadRows> {
    const { onProgress } = this.#options;
    const deleted = new DeletedPersons();
    await readDeletions(this.#database, this.#options, this.#window.since, deleted);
    return await readPieces({
      ...this.#options,
      ...{ admin: this.#admin, state: this.#state, deleted, pace: this.#pace },
      onProgress: (done, total) => onProgress('read of the log', done, total),
    });
  }

  async #join(
    { events, changes, workspaces }: ReadRows,
    storage: StorageState,
    candidates: Pending<Candidate>,
    strays: Pending<Stray>,
  ): Promise<ReadonlySet<number>> {
    const { folder, onProgress } = this.#options;
    const { since, until } = this.#window;
    const stored = new Slices(folder.path, 'stored', STORED_BYTES, NO_LENGTHS);
    const registers = new Slices(folder.path, 'registers', REGISTER_BYTES, NO_LENGTHS);
    onProgress('reading what is stored');
    const margin = MARGIN_MS * 1_000;
    const times = { from: since - margin, to: until };
    await readStoredEvents(this.#database, this.#options, times, { slices: stored, count: SLICES, workspaces });
    await readRegisters(this.#database, this.#options, since, { slices: registers, count: SLICES });
    const days = new Set<number>();
    const common = {
      ...{ ...this.#window, books: this.#books, candidates },
      nameOf: (workspace: number) => workspaces.nameOf(workspace),
      storedUpTo: storage.storedUpTo,
    };
    const keptFromMs = (workspace: number) => storage.keptFromMs(workspaces.nameOf(workspace));
    const ofEvents: EventJoin = { ...common, strays, days, keptFromMs };
    const ofChanges: ChangeJoin = { ...common, now: this.#options.nowMs * 1_000 };
    for (let slice = 0; slice < SLICES; slice += 1) {
      this.#options.signal.throwIfAborted();
      joinEvents(events.read(slice), stored.read(slice), ofEvents);
      const log = changes.read(slice);
      const deadLetters = await findDeadLetters(this.#database, rejectedCallsOf(log));
      joinChanges(log, registers.read(slice), deadLetters, ofChanges);
      onProgress('compared', slice + 1, SLICES);
    }
    for (const slices of [stored, registers]) slices.close();
    return days;
  }

  async #judgeStrays(strays: Pending<Stray>, storage: StorageState): Promise<void> {
    const [{ partitions = 0 } = {}] = await this.#database.read<{ partitions: number }>('read-partition-counts', {
      topic: this.#options.topics.events,
    });
    const count = 1 + Math.max(0, ...this.#logs.map(({ partition }) => partition));
    const notes = await judgeStrays(strays, {
      ...this.#options,
      ...{ admin: this.#admin, database: this.#database, logs: this.#logs, pace: this.#pace, ...this.#window },
      lostAtMs: (partition) => storage.lostAtMs('events', partition),
      partitionCounts: [...new Set([partitions, count])].filter((number) => number > 0),
      onInvented: ({ workspace, uuid, ms, received }) => {
        this.#books.add(workspace, received, 'events', 'invented', 1);
        this.#list({
          ...{ workspace, received, kind: 'events', difference: 'invented', key: uuid },
          ...{ topic: this.#options.topics.events, partition: null, offset: null, line: null },
          detail: `It is stored with the timestamp ${new Date(ms).toISOString()}, and no record of the log has it.`,
        });
      },
    });
    strays.close();
    this.#notes.push(...notes);
  }

  /** Looks at what has no reason yet, and once more after a pause: everything moves meanwhile. */
  async #judgeCandidates(candidates: Pending<Candidate>, deletions: DeletionPlaces): Promise<void> {
    const { folder, onProgress } = this.#options;
    onProgress(`looking again at ${candidates.count} rows`);
    const left = new Pending<Candidate>(folder.path, 'left');
    await this.#look(candidates, deletions, ({ candidate, fate }) => {
      if (fate === 'missing' || fate === 'unknown') left.add(candidate);
      else this.#books.count(candidate.workspace, candidate, candidate.kind, fate);
    });
    if (left.count > 0) await sleep(PAUSE_MS, this.#options.signal);
    await this.#look(left, deletions, ({ candidate, fate, key, detail }) => {
      const { workspace, received, kind, role, partition, offset, line } = candidate;
      this.#books.count(workspace, candidate, kind, fate);
      if (fate !== 'missing') return;
      const topic = this.#options.topics[role];
      this.#list({ workspace, received, kind, difference: 'missing', key, topic, partition, offset, line, detail });
    });
    for (const pending of [candidates, left]) pending.close();
  }

  async #look(candidates: Pending<Candidate>, deletions: DeletionPlaces, onSeen: (seen: Seen) => void): Promise<void> {
    const { topics, signal } = this.#options;
    const isWhole = this.#state.pieces.every(({ role, from }) => role !== 'events' || from === '0');
    const options = {
      ...{ database: this.#database, records: new RecordReader(this.#admin, this.#pace), topics, deletions },
      readFromMs: isWhole ? 0 : this.#state.sinceMs - MARGIN_MS,
    };
    for await (const batch of candidates.batches(LOOK_MAX)) {
      signal.throwIfAborted();
      const storage = await this.#readStorageState();
      for (const seen of await lookAgain(batch, storage, options)) onSeen(seen);
    }
  }

  async #countDuplicates(days: ReadonlySet<number>): Promise<void> {
    this.#options.onProgress('looking for events that are stored twice');
    const isWhole = await countDuplicates({
      ...{ ...this.#options, database: this.#database, days, ...this.#window, books: this.#books },
      onDuplicate: ({ workspace, uuid, ms, received, rows }) =>
        this.#list({
          ...{ workspace, received, kind: 'events', difference: 'duplicate', key: uuid },
          ...{ topic: this.#options.topics.events, partition: null, offset: null, line: null },
          detail: `${rows} rows with the timestamp ${new Date(ms).toISOString()} show.`,
        }),
    });
    if (!isWhole) this.#notes.push('There are more events that are stored twice than could be counted.');
  }

  #list(difference: ListedDifference): void {
    if (this.#listed.length < LISTED_MAX) this.#listed.push(difference);
  }

  #result(): AuditResult {
    const { id, startedMs, sinceMs, untilMs } = this.#state;
    const { workspace, share, shares } = this.#options;
    const hours = this.#books.hours;
    const firstWrong = Math.min(
      ...hours.filter(({ counts }) => differencesOf(counts) > 0).map(({ hour }) => hour * 1_000),
    );
    const unknown = this.#books.totals.unknown;
    if (unknown > 0)
      this.#notes.push(`Where ${unknown} ${unknown === 1 ? 'row is' : 'rows are'}, nothing that is left says.`);
    return {
      ...{ id, startedMs, sinceMs, untilMs, workspace, share, shares, hours, differences: this.#listed },
      ...{ notes: this.#notes, balancedThroughMs: Math.min(untilMs, firstWrong) },
    };
  }
}
