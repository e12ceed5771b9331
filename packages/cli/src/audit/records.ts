import { KEY_BYTES, readUuid, writeUuid } from './identifiers.ts';
import type { Room } from './slices.ts';

// What is known of a row, in records of one size: files of them are compared, slice by slice. Times of receipt are in
// microseconds since 1970.

/** Where a row stands in the log. */
export interface Place {
  readonly partition: number;
  readonly offset: number;
  readonly line: number;
}

/** What records of all kinds of rows of the log have: a key of 16 bytes first. */
interface Placed extends Place {
  /** The number of its workspace. */
  readonly workspace: number;
  readonly flags: number;
  readonly received: number;
  /** When the person was deleted last; 0: never. */
  readonly deleted: number;
}

const [WORKSPACE, FLAGS, PARTITION, OFFSET, LINE, EXTRA, RECEIVED, DELETED, TIME] = [
  16, 20, 22, 24, 32, 36, 40, 48, 56,
];

function writePlaced({ bytes, at }: Room, row: Placed): void {
  bytes.writeUInt32LE(row.workspace, at + WORKSPACE);
  bytes.writeUInt16LE(row.flags, at + FLAGS);
  bytes.writeUInt16LE(row.partition, at + PARTITION);
  bytes.writeDoubleLE(row.offset, at + OFFSET);
  bytes.writeUInt32LE(row.line, at + LINE);
  bytes.writeDoubleLE(row.received, at + RECEIVED);
  bytes.writeDoubleLE(row.deleted, at + DELETED);
}

function readPlaced(bytes: Buffer, at: number): Placed {
  return {
    workspace: bytes.readUInt32LE(at + WORKSPACE),
    flags: bytes.readUInt16LE(at + FLAGS),
    partition: bytes.readUInt16LE(at + PARTITION),
    offset: bytes.readDoubleLE(at + OFFSET),
    line: bytes.readUInt32LE(at + LINE),
    received: bytes.readDoubleLE(at + RECEIVED),
    deleted: bytes.readDoubleLE(at + DELETED),
  };
}

/** An event in the log. */
export interface EventRecord extends Placed {
  /** In milliseconds since 1970; NaN where the row is none that can be read. */
  readonly ms: number;
}

export const EVENT_BYTES = 64;
export const STAMPED = 1;
/** No event can be read in the row: it should be a dead letter. */
export const UNREADABLE = 2;

/** Writes an event of the log; one that cannot be read is without a uuid. */
export function writeEvent(room: Room, uuid: string | undefined, event: EventRecord): void {
  writePlaced(room, event);
  room.bytes.writeDoubleLE(event.ms, room.at + TIME);
  if (uuid !== undefined) writeUuid(uuid, room.bytes, room.at);
}

export function readEvent(bytes: Buffer, at: number): EventRecord {
  return { ...readPlaced(bytes, at), ms: bytes.readDoubleLE(at + TIME) };
}

/** An event in ClickHouse. */
export interface StoredRecord {
  readonly workspace: number;
  readonly ms: number;
  readonly received: number;
}

export const STORED_BYTES = 40;

/** Writes an event of ClickHouse, with the 16 bytes of its uuid. */
export function writeStored({ bytes, at }: Room, uuid: Buffer, row: StoredRecord): void {
  uuid.copy(bytes, at, 0, KEY_BYTES);
  bytes.writeUInt32LE(row.workspace, at + WORKSPACE);
  bytes.writeDoubleLE(row.ms, at + 24);
  bytes.writeDoubleLE(row.received, at + 32);
}

export function readStored(bytes: Buffer, at: number): StoredRecord {
  return {
    workspace: bytes.readUInt32LE(at + WORKSPACE),
    ms: bytes.readDoubleLE(at + 24),
    received: bytes.readDoubleLE(at + 32),
  };
}

export { readUuid };

/** A change, or a rejected call, in the log. */
export interface ChangeRecord extends Placed {
  /** Which of the registers of its key it changes: {@link SEEN}, {@link DELETED_USER}, or a `once_week`. */
  readonly week: number;
}

export const CHANGE_BYTES = 56;

/** The numbers of what no `once_week` is. */
export const SEEN = 65_536;
export const DELETED_USER = 65_537;
export const REJECTED = 65_538;
/** No change can be read in the row. */
export const NO_CHANGE = 65_539;

/** The change came in the topic of events. */
export const IN_EVENTS = 1;
/** The change is of a user. */
export const OF_USER = 2;

export function writeChange(room: Room, key: Buffer, change: ChangeRecord): void {
  writePlaced(room, change);
  room.bytes.writeUInt32LE(change.week, room.at + EXTRA);
  key.copy(room.bytes, room.at, 0, KEY_BYTES);
}

export function readChange(bytes: Buffer, at: number): ChangeRecord {
  return { ...readPlaced(bytes, at), week: bytes.readUInt32LE(at + EXTRA) };
}

/** A register in ClickHouse: its key first. */
export interface RegisterRecord {
  readonly week: number;
  readonly version: number;
}

export const REGISTER_BYTES = 32;

export function writeRegister({ bytes, at }: Room, key: Room, row: RegisterRecord): void {
  key.bytes.copy(bytes, at, key.at, key.at + KEY_BYTES);
  bytes.writeUInt32LE(row.week, at + 16);
  bytes.writeDoubleLE(row.version, at + 24);
}

export function readRegister(bytes: Buffer, at: number): RegisterRecord {
  return { week: bytes.readUInt32LE(at + 16), version: bytes.readDoubleLE(at + 24) };
}
