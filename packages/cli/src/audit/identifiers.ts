import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** How many bytes a uuid or a hash of a key has. */
export const KEY_BYTES = 16;

export function isUuid(text: unknown): text is string {
  return typeof text === 'string' && UUID.test(text);
}

/** Writes a uuid as its 16 bytes. */
export function writeUuid(uuid: string, bytes: Buffer, at: number): void {
  bytes.write(uuid.replaceAll('-', ''), at, KEY_BYTES, 'hex');
}

export function readUuid(bytes: Buffer, at: number): string {
  const hex = bytes.toString('hex', at, at + KEY_BYTES);
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Writes the 16 bytes of a uuid that ClickHouse sends as two numbers, each with its last byte first. */
export function copyStoredUuid(from: Buffer, fromAt: number, bytes: Buffer, at: number): void {
  bytes.writeUInt32BE(from.readUInt32LE(fromAt + 4), at);
  bytes.writeUInt32BE(from.readUInt32LE(fromAt), at + 4);
  bytes.writeUInt32BE(from.readUInt32LE(fromAt + 12), at + 8);
  bytes.writeUInt32BE(from.readUInt32LE(fromAt + 8), at + 12);
}

/** Returns a number that follows from 16 bytes, from 0 to 2^32 - 1. */
export function mixOf(bytes: Buffer, at: number): number {
  const mixed =
    bytes.readUInt32LE(at) ^ bytes.readUInt32LE(at + 4) ^ bytes.readUInt32LE(at + 8) ^ bytes.readUInt32LE(at + 12);
  return Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d) >>> 0;
}

/** Returns the slice of 16 bytes. */
export function sliceOf(bytes: Buffer, at: number, slices: number): number {
  return mixOf(bytes, at) % slices;
}

/** Returns the 16 bytes that stand for texts, as MD5 in ClickHouse computes them: the texts are joined by zero characters. */
export function keyOf(...texts: readonly string[]): Buffer {
  return hash('md5', texts.join('\0'), 'buffer');
}

/** What is added to an identifier, so that the shares of a sample differ from the partitions of Kafka. */
const SALT = '/audit';

/** One of several equal parts of all uuids, users and organizations. */
export interface Share {
  /** From 1 to `shares`. */
  readonly share: number;
  readonly shares: number;
}

/** Whether an event, a user or an organization is in a share. `audit.sql` has the same. */
export function isInShare({ share, shares }: Share, id: string): boolean {
  return shares === 1 || crc32(id + SALT) % shares === share - 1;
}
