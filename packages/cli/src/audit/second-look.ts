import type { Fate } from './books.ts';
import type { Database } from './database.ts';
import type { DeletionPlaces } from './deletion-places.ts';
import { weekOf } from './intake.ts';
import { versionIn } from './join-changes.ts';
import type { Candidate } from './join-events.ts';
import type { RecordReader } from './log-reader.ts';
import { type LogRow, rowsOf } from './log-rows.ts';
import { isTimedByReceipt, repeats } from './originals.ts';
import type { Place } from './records.ts';
import type { StorageState } from './storage-state.ts';
import type { Topics } from './topic-logs.ts';
import { MARGIN_MS } from './window.ts';

/** How many rows are looked at together. */
export const LOOK_MAX = 1_000;

/** How long what is asked for with one statement may be, in bytes. */
const PARAMETER_BYTES = 40_000;

/** Look-ups around times that are further apart have statements of their own, in milliseconds. */
const STAMPED_GAP_MS = 3_600_000;

/** How far the timestamp of an event may be ahead when it is accepted, in milliseconds. */
const AHEAD_MS_MAX = 86_400_000;

/** What became of a candidate, and what it was. */
export interface Seen {
  readonly candidate: Candidate;
  readonly fate: Fate;
  /** The uuid of an event; of a change, what it changes. */
  readonly key: string;
  /** What was looked at, in a sentence. */
  readonly detail: string;
}

/** A row that is read again. */
interface Read {
  readonly candidate: Candidate;
  readonly row: LogRow;
  readonly earlier: readonly LogRow[];
}

interface StoredEvent {
  readonly workspace: string;
  readonly event: string;
  readonly ms: number;
  readonly received: number;
  readonly person: string;
}

/** What the database has of candidates. */
interface Found {
  /** By workspace and uuid. */
  readonly events: ReadonlyMap<string, readonly StoredEvent[]>;
  readonly registers: ReadonlyMap<string, number>;
  readonly deletions: ReadonlyMap<string, number>;
  readonly deadLetters: ReadonlySet<string>;
  /** The newest deletion of a workspace. */
  readonly newestDeletions: ReadonlyMap<string, number>;
}

export interface LookOptions {
  readonly database: Database;
  readonly records: RecordReader;
  readonly topics: Topics;
  readonly deletions: DeletionPlaces;
  /** From which time of receipt on the log was read, in milliseconds; 0: from its begin. */
  readonly readFromMs: number;
}

/**
 * Looks again at rows for which no reason was found: reads them from the log, and asks the database for all that may be the
 * reason.
 *
 * @throws kafkajs's and ClickHouse's errors
 */
export async function lookAgain(
  candidates: readonly Candidate[],
  state: StorageState,
  options: LookOptions,
): Promise<readonly Seen[]> {
  const ordered = candidates.toSorted(
    (one, other) =>
      Number(one.role > other.role) - Number(one.role < other.role) ||
      one.partition - other.partition ||
      one.offset - other.offset,
  );
  const read: Read[] = [];
  const seen: Seen[] = [];
  for (const candidate of ordered) {
    const row = await readRow(candidate.role, candidate, options);
    if (row) {
      const earlier: LogRow[] = [];
      for (const place of candidate.earlier) {
        const other = await readRow('events', place, options);
        if (other) earlier.push(other);
      }
      read.push({ candidate, row, earlier });
    } else seen.push({ candidate, fate: 'unknown', key: '', detail: 'Kafka has deleted the record meanwhile.' });
  }
  const found = await find(read, options.database);
  return [...seen, ...read.map((one) => judge(one, found, state, options))];
}

async function readRow(role: Candidate['role'], place: Place, { records, topics }: LookOptions) {
  const record = await records.read(topics[role], place.partition, String(place.offset));
  return record && rowsOf(record).find(({ line }) => line === place.line);
}

async function find(read: readonly Read[], database: Database): Promise<Found> {
  const rows = read.map(({ row }) => row);
  const events = await findEvents(database, rows);
  const persons = [
    ...[...rows, ...read.flatMap(({ earlier }) => earlier)].map(({ workspace, person }) => ({ workspace, person })),
    ...[...events.values()].flat().map(({ workspace, person }) => ({ workspace, person })),
    ...rows.flatMap(({ workspace, change }) => (change ? [{ workspace, person: change.id }] : [])),
    ...rows.flatMap(({ workspace, merged }) => (merged === undefined ? [] : [{ workspace, person: merged }])),
  ].filter(({ person }) => person !== '');
  const ids = rows.map((row) => row.deadLetter());
  const deadLetters = await findDeadLetters(database, ids);
  const workspaces = [...new Set(rows.map(({ workspace }) => workspace))];
  const newest = await chunked(workspaces, (some) =>
    database.read<{ workspace: string; version: number }>('newest-deletions', { workspaces: some }),
  );
  return {
    events,
    registers: await findRegisters(database, rows),
    deletions: await findDeletions(database, persons),
    deadLetters,
    newestDeletions: new Map(newest.map(({ workspace, version }) => [workspace, version])),
  };
}

/** Asks for some at a time: a parameter of a statement has a limit of its bytes. */
async function chunked<Item, Row>(
  items: readonly Item[],
  read: (some: readonly Item[]) => Promise<Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  let [some, bytes]: [Item[], number] = [[], 0];
  for (const item of items) {
    some.push(item);
    bytes += Buffer.byteLength(JSON.stringify(item));
    if (bytes < PARAMETER_BYTES && some.length < LOOK_MAX) continue;
    rows.push(...(await read(some)));
    [some, bytes] = [[], 0];
  }
  if (some.length > 0) rows.push(...(await read(some)));
  return rows;
}

/** Returns which of some ids dead letters have. @throws ClickHouse's errors */
export async function findDeadLetters(database: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const found = await chunked(ids, (some) => database.read<{ id: string }>('find-dead-letters', { ids: some }));
  return new Set(found.map(({ id }) => id));
}

/** Returns the versions of the last deletions, by workspace and person. @throws ClickHouse's errors */
export async function findDeletions(
  database: Database,
  persons: readonly { readonly workspace: string; readonly person: string }[],
): Promise<ReadonlyMap<string, number>> {
  const found = await chunked(persons, (some) => {
    const parameters = { workspaces: some.map((one) => one.workspace), persons: some.map((one) => one.person) };
    return database.read<{ workspace: string; person: string; version: number }>('find-deletions', parameters);
  });
  return new Map(found.map(({ workspace, person, version }) => [`${workspace}\0${person}`, version]));
}

/** Returns stored events, by workspace and uuid: those with the keys of some, and those that stamped ones repeat. @throws ClickHouse's errors */
export async function findEvents(database: Database, rows: readonly Pick<LogRow, 'workspace' | 'event'>[]) {
  const events = rows.flatMap(({ workspace, event }) => (event ? [{ workspace, ...event }] : []));
  const keys = (some: readonly (typeof events)[number][]) => ({
    workspaces: some.map(({ workspace }) => workspace),
    times: some.map(({ ms }) => ms),
    uuids: some.map(({ uuid }) => uuid),
  });
  const found = await chunked(events, (some) => database.read<StoredEvent>('find-events', keys(some)));
  const stamped = events.filter(({ isStamped }) => isStamped).sort((one, other) => one.ms - other.ms);
  for (const near of nearOnes(stamped)) {
    const range = { firstMs: near[0]?.ms, lastMs: near.at(-1)?.ms };
    const rows = await chunked(near, (some) => {
      const { workspaces, uuids } = keys(some);
      return database.read<StoredEvent>('find-stamped-events', { workspaces, uuids, ...range });
    });
    found.push(...rows);
  }
  return Map.groupBy(found, ({ workspace, event }) => `${workspace}\0${event}`);
}

/** Splits events, in the order of their times, where these are far apart. */
function nearOnes<Event extends { readonly ms: number }>(events: readonly Event[]): Event[][] {
  const groups: Event[][] = [];
  for (const event of events) {
    const last = groups.at(-1);
    if (last && event.ms - (last.at(-1)?.ms ?? 0) < STAMPED_GAP_MS) last.push(event);
    else groups.push([event]);
  }
  return groups;
}

async function findRegisters(database: Database, rows: readonly LogRow[]): Promise<ReadonlyMap<string, number>> {
  const changes = rows.flatMap(({ workspace, change }) => (change ? [{ workspace, ...change }] : []));
  const keys = (some: readonly (typeof changes)[number][]) => ({
    workspaces: some.map(({ workspace }) => workspace),
    kinds: some.map(({ entity }) => entity),
    ids: some.map(({ id }) => id),
  });
  type Row = { workspace: string; entity_kind: string; id: string; property: string; week: number; version: number };
  const properties = await chunked(changes, (some) =>
    database.read<Row>('find-registers', { ...keys(some), properties: some.map(({ property }) => property) }),
  );
  const entities = await chunked(changes, (some) => database.read<Row>('find-entities', keys(some)));
  const nameOf = (row: Row) => registerName(row.workspace, row.entity_kind, row.id, row.property, row.week);
  return new Map([
    ...properties.map((row): [string, number] => [nameOf(row), row.version]),
    ...entities.map((row): [string, number] => [registerName(row.workspace, row.entity_kind, row.id), row.version]),
  ]);
}

function registerName(...parts: readonly (string | number)[]): string {
  return parts.join('\0');
}

function judge(read: Read, found: Found, state: StorageState, options: LookOptions): Seen {
  const { candidate, row } = read;
  const seen = (fate: Fate, detail = '') => ({ candidate, fate, key: nameOfRow(row), detail });
  const deleted = deletedAt(row, found);
  if (row.change?.operation === 'delete') {
    if (deleted >= row.received) return seen('stored');
  } else if (deleted >= row.received) return seen('deleted');
  if (row.event && row.event.ms < state.keptFromMs(row.workspace)) return seen('expired');
  if (found.deadLetters.has(row.deadLetter())) return seen('dead_letters');
  const fate = row.event ? fateOfEvent(read, found, state, options) : fateOfChange(row, found);
  if (fate) return seen(fate);
  const { role, partition, offset } = candidate;
  const storedUpTo = state.storedUpTo(role, partition);
  if (offset >= storedUpTo) return seen('waiting');
  const givenUp = state.givenUpAt(role, partition, offset);
  if (givenUp !== undefined)
    return seen('given_up', `An operator gave it up at ${givenUp}, when the partition was resumed.`);
  if (mayRepeatUnread(read, found, state, options)) {
    return seen('unknown', 'It may repeat an event that the log does not have, whose user was deleted since.');
  }
  return seen('missing', describe(row, storedUpTo));
}

function describe({ event, change }: LogRow, storedUpTo: number): string {
  const position = `The writers have stored this partition up to offset ${storedUpTo}`;
  if (event)
    return `${position}; there is no event with its workspace, timestamp and uuid, no original, no dead letter, no deletion.`;
  if (change)
    return `${position}; what is stored is older than this change, and there is no dead letter and no deletion.`;
  return `${position}; it is none of the dead letters.`;
}

function deletedAt({ workspace, person, merged = '' }: LogRow, { deletions }: Found): number {
  return Math.max(...[person, merged].map((one) => deletions.get(`${workspace}\0${one}`) ?? 0));
}

function fateOfEvent(
  { candidate, row, earlier }: Read,
  found: Found,
  state: StorageState,
  { deletions }: LookOptions,
): Fate | undefined {
  const { workspace, received, event } = row;
  if (!event) return undefined;
  const own = { ms: event.ms, received };
  const stored = found.events.get(`${workspace}\0${event.uuid}`) ?? [];
  if (stored.some((one) => one.ms === event.ms && one.received === received)) return 'stored';
  const originals = stored.filter((one) => repeats(own, event.isStamped, one));
  // Whether a deletion hides an original, and came after this event: else the event would have been stored.
  const isGone = (one: { readonly person: string; readonly received: number }) => {
    const at = found.deletions.get(`${workspace}\0${one.person}`) ?? 0;
    if (at < one.received) return false;
    return at >= received || deletions.lastOf(workspace, one.person, candidate.partition) > candidate.offset;
  };
  const isHidden = ({ person, received: of }: StoredEvent) =>
    (found.deletions.get(`${workspace}\0${person}`) ?? 0) >= of;
  if (originals.some((one) => !isHidden(one))) return 'repeats';
  const before = earlier.filter(
    (one) => one.event && repeats(own, event.isStamped, { ms: one.event.ms, received: one.received }),
  );
  if ([...originals, ...before].some(isGone)) return 'deleted';
  if (before.some((one) => (one.event?.ms ?? 0) < state.keptFromMs(workspace))) return 'expired';
  return undefined;
}

function fateOfChange({ workspace, received, change }: LogRow, { registers }: Found): Fate | undefined {
  if (!change) return undefined;
  const { entity, id, operation, property } = change;
  const week = weekOf(change, received);
  const version = registers.get(
    operation === 'seen' ? registerName(workspace, entity, id) : registerName(workspace, entity, id, property, week),
  );
  return version !== undefined && version >= versionIn(week, received) ? 'stored' : undefined;
}

/**
 * Whether an event may repeat one that is erased by now, and that was received before the log that was read, or that the log has lost since
 * it was stored. Only a deletion since then erases it, an event is received a day before its time at most, and a stamped one
 * repeats only what came minutes before.
 */
function mayRepeatUnread(
  { candidate, row }: Read,
  { newestDeletions }: Found,
  state: StorageState,
  { readFromMs }: LookOptions,
): boolean {
  if (!row.event || (newestDeletions.get(row.workspace) ?? 0) < row.received) return false;
  const lostAtMs = state.lostAtMs('events', candidate.partition);
  const unreadMs = Math.max(readFromMs, lostAtMs > 0 ? lostAtMs + MARGIN_MS : 0);
  if (unreadMs === 0) return false;
  return row.event.ms < unreadMs + (isTimedByReceipt({ ms: row.event.ms, received: row.received }) ? 0 : AHEAD_MS_MAX);
}

function nameOfRow({ event, change, kind, deadLetter }: LogRow): string {
  if (event) return event.uuid;
  if (change) return JSON.stringify([change.entity, change.id, change.operation, change.property]);
  return kind === 'rejected' ? deadLetter() : '';
}
