import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import type { FastColumns, FastList } from './fast-columns.ts';
import type { DeletionOfUser, LinkFact } from './visitor-owner.ts';

/** The rows of the tables that the writer stores into, in a shape that is easy to search. */
export interface Tables {
  readonly epochs: EpochRow[];
  readonly positions: Map<string, PositionRow>;
  readonly halts: Map<string, HaltRow>;
  readonly gaps: GapRow[];
  readonly groups: Set<string>;
  /** Whose the database is, as writers have recorded it; the newest first. */
  identities: IdentityRow[];
  readonly topicPartitions: Map<string, number>;
  /** The version of the last deletion of each user and visitor, by {@link userKey}. */
  readonly deletions: Map<string, number>;
  pendingDeletions: PendingDeletion[];
  /** Each deletion of a user, by what tells it from others. */
  readonly identityDeletions: Map<string, IdentityDeletion>;
  /** What says whose visitors are, by what tells a fact from others. */
  readonly links: Map<string, LinkFact>;
  /** Through when everything is stored, as writers have recorded it; in milliseconds since 1970. */
  throughMs: number;
  events: StoredEvent[];
  fastLists: FastList[];
  /** The winning change of each row of a property, by what tells the row from others. */
  readonly properties: Map<string, PropertyRow>;
  readonly entities: Map<string, EntityRow>;
  sightings: SightingRow[];
  /**
   * The times that stand in for those of users who came back, in milliseconds since 1970, by {@link userKey}: nothing that was
   * seen of them since their deletion was stored when they were erased. The oracle alone reads them.
   */
  readonly standIns: Map<string, number[]>;
  readonly deadLetters: Map<string, DeadLetterRow>;
  /** Grows with each statement on dead letters. ClickHouse's clock has microseconds, which the simulator's has not. */
  deadLetterTime: number;
  /** The attempts at batches that have ended, where any replica may run a statement. */
  readonly ended: Set<string>;
  /** The replicas at which statements may store, and those where they may not any more, by name. */
  readonly replicas: Map<string, RecordedReplica>;
}

export interface RecordedReplica {
  readonly replica: string;
  readonly isGone: boolean;
  /** In milliseconds since 1970. */
  readonly changedAt: number;
}

/** The length of a week in microseconds. */
export const WEEK_US = 604_800_000_000;

export interface IdentityRow {
  readonly id: string;
  readonly server: string;
  readonly groupId: string;
  readonly partitions: string;
  readonly state: string;
  readonly detail: string;
}

export interface EpochRow {
  readonly incarnation: number;
  readonly generation: number;
  readonly leaderId: string;
}

export interface PositionRow {
  readonly topic: string;
  readonly partition: number;
  readonly nextOffset: number;
  readonly fingerprint: string;
  readonly leaderEpoch: number;
  /** Higher for a later row: the newest counts. */
  readonly storedAt: number;
}

export interface GapRow {
  readonly topic: string;
  readonly partition: number;
  readonly reason: string;
  readonly detail: string;
  readonly firstOffset: string | null;
  readonly lastOffset: string | null;
}

export interface HaltRow extends GapRow {
  readonly isResumed: boolean;
  /** Higher for a later row: the newest counts. */
  readonly stateAt: number;
}

export interface PendingDeletion {
  readonly workspace: string;
  readonly user: string;
  readonly version: number;
  /** In milliseconds since 1970. */
  readonly storedAtMs: number;
}

/** A deletion of a user whose visitors are to be deleted, too. */
export interface IdentityDeletion extends DeletionOfUser {
  /** Since when they are; in milliseconds since 1970. 0: they are not. */
  readonly settledAtMs: number;
}

/** A row of a staging table, with what its columns default to. */
export type StagedEvent = EventRow & { readonly user_id: string; readonly group_id: string };

export interface StoredEvent extends StagedEvent {
  /** The partition of the table: each insert writes its rows as a part of their own. */
  readonly month: string;
  readonly fast: FastColumns;
}

export interface PropertyRow {
  readonly workspace: string;
  readonly kind: string;
  readonly id: string;
  /** 0: what was set or removed. 1: what was set once first. Others: what was set once last in this week. */
  readonly onceWeek: number;
  readonly change: ChangeRow;
}

export interface EntityRow {
  readonly workspace: string;
  readonly kind: string;
  readonly id: string;
  /** The deletion after which the row of a user begins, or empty. */
  readonly otherId: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  readonly version: number;
}

export interface SightingRow {
  readonly workspace: string;
  readonly user: string;
  readonly version: number;
  readonly group: string;
}

export interface DeadLetterRow {
  readonly kind: string;
  readonly format: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
  readonly line: number;
  readonly row: string;
  readonly reason: string;
  /** When it was recorded, or read for the replay that has marked it, by {@link Tables.deadLetterTime}. */
  readonly stateAt: number;
  readonly isReplayed: boolean;
}

export function createTables(): Tables {
  return {
    epochs: [],
    positions: new Map(),
    halts: new Map(),
    gaps: [],
    groups: new Set(),
    identities: [],
    topicPartitions: new Map(),
    deletions: new Map(),
    pendingDeletions: [],
    identityDeletions: new Map(),
    links: new Map(),
    throughMs: 0,
    events: [],
    fastLists: [],
    properties: new Map(),
    entities: new Map(),
    sightings: [],
    standIns: new Map(),
    deadLetters: new Map(),
    deadLetterTime: 0,
    ended: new Set(),
    replicas: new Map(),
  };
}

export function userKey(workspace: string, user: string): string {
  return `${workspace}\0${user}`;
}

/** Returns whose event it is, as deletions name users and visitors: a {@link userKey}. */
export function personKey({
  workspace_id,
  user_id = '',
  anonymous_id = '',
}: Pick<EventRow, 'workspace_id' | 'user_id' | 'anonymous_id'>): string {
  return userKey(workspace_id, user_id || visitorOf(anonymous_id));
}

/** What makes two events the same one. */
export function eventKey({
  workspace_id,
  timestamp,
  uuid,
}: Pick<EventRow, 'workspace_id' | 'timestamp' | 'uuid'>): string {
  return `${workspace_id}\0${timestamp}\0${uuid}`;
}

/**
 * Returns the change that decides a property, as queries find it: the last one that sets or removes it, otherwise the first one
 * that sets it once, of those that no deletion hides. Of a user who was deleted, the last one of each week stands in for the others of
 * the week.
 */
export function currentChange(
  { properties, deletions }: Tables,
  { workspace, kind, id, property }: Omit<PropertyRow, 'onceWeek' | 'change'> & { readonly property: string },
): ChangeRow | undefined {
  const deletedAt = kind === 'user' ? (deletions.get(userKey(workspace, id)) ?? 0) : 0;
  const prefix = [workspace, kind, id, property, ''].join('\0');
  const rows = [...properties].flatMap(([key, row]) => (key.startsWith(prefix) ? [row] : []));
  const counting = rows.filter(({ onceWeek, change }) =>
    deletedAt === 0 ? onceWeek < 2 : onceWeek !== 1 && change.version > deletedAt,
  );
  const sorted = counting.toSorted((one, other) => one.onceWeek - other.onceWeek);
  return sorted[0]?.change;
}

/** Returns whether the deletion of its user or visitor hides an event. */
export function isHidden(tables: Tables, event: StagedEvent): boolean {
  return event.received_at <= (tables.deletions.get(personKey(event)) ?? 0);
}

/** Returns when a user was seen after a version, in milliseconds since 1970: in events and in submissions without any. */
export function timesAfter({ events, sightings }: Tables, user: string, after: number): number[] {
  const seenIn = events
    .filter((event) => userKey(event.workspace_id, event.user_id) === user && event.received_at > after)
    .map(({ timestamp }) => timestamp);
  const seenAt = sightings
    .filter((sighting) => userKey(sighting.workspace, sighting.user) === user && sighting.version > after)
    .map(({ version }) => Math.floor(version / 1_000));
  return [...seenIn, ...seenAt];
}

/** Returns the rows of a user: one for each deletion after which a row begins. */
export function rowsOfUser({ entities }: Tables, user: string): EntityRow[] {
  return [...entities.values()].filter((row) => row.kind === 'user' && userKey(row.workspace, row.id) === user);
}

/** What a row shows of a user, an organization or a membership. */
export interface Sighting {
  readonly timeMs: number;
  readonly version: number;
}

/** Adds a sighting of a user, an organization or a membership. */
export function see(
  tables: Tables,
  [workspace, kind, id, otherId]: readonly [string, string, string, string],
  { timeMs, version }: Sighting,
): void {
  const key = [workspace, kind, id, otherId].join('\0');
  const known = tables.entities.get(key) ?? {
    ...{ workspace, kind, id, otherId, firstSeenMs: timeMs, lastSeenMs: timeMs, version },
  };
  tables.entities.set(key, {
    ...known,
    firstSeenMs: Math.min(known.firstSeenMs, timeMs),
    lastSeenMs: Math.max(known.lastSeenMs, timeMs),
    version: Math.max(known.version, version),
  });
}
