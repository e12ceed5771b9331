import { serverName } from '@sluice/shared/servers/servers-file';
import { z } from 'zod';
import { parseToken, tokenOf } from '../http/http.ts';
import { serverNames } from '../store/store.ts';

/*
 * A position in the order of storage. Each insert into `events` gets the next block number at the moment at which its rows
 * become visible (docs/design/decisions/0025-order-of-storage.md), so whoever has seen a block has seen all lower ones. Inside
 * a block, events are ordered by timestamp and uuid. Servers with different partitions count blocks of their own: a position
 * names a place for each of them.
 *
 * Example. A position says block 7, 12:00:05.000, uuid 42…. The stream goes on with the events of block 7 that have a
 * later timestamp, or this one and a higher uuid; then comes block 8, with events of any time.
 *
 * The mirrors of a file of servers number their blocks differently. There an id also says whose number it is, and until when
 * everything that Kafka had appended was sent: so a stream goes on at another server (stream-server.ts).
 */

/** A place on one server: everything up to and with the event of this key in the block, and all lower blocks. */
export interface StoredAt {
  readonly block: number;
  readonly timestampMs: number;
  readonly uuid: string;
}

/** A place for each server, by its number; where there is one, its number is 0. */
export type StreamPosition = ReadonlyMap<number, StoredAt>;

/** Whose blocks a position counts, where there is a file of servers. */
export interface StreamOrigin {
  /** The name of the server, or of those with the ranges of partitions, with `+` between them. */
  readonly server: string;
  /** Tells its database from others that had its name: eight hexadecimal digits for each server. */
  readonly database: string;
  /** Everything that Kafka had appended before was sent up to the position, in milliseconds since 1970. 0: nothing is known. */
  readonly throughMs: number;
}

/** What an id says. */
export interface StreamId {
  readonly position: StreamPosition;
  /** When it was sent. */
  readonly sentAtMs: number;
  /** Undefined where there was no file of servers. */
  readonly origin: StreamOrigin | undefined;
}

/** The key of no event, above that of every event. */
const END_OF_BLOCK = { timestampMs: Date.UTC(2299, 11, 31), uuid: 'ffffffff-ffff-ffff-ffff-ffffffffffff' } as const;

/** Returns the place at the end of a block. */
export function endOfBlock(block: number): StoredAt {
  return { block, ...END_OF_BLOCK };
}

export function isEndOfBlock({ timestampMs }: StoredAt): boolean {
  return timestampMs === END_OF_BLOCK.timestampMs;
}

/** Whether the first place is after the second one, or the same; no place at all is before every other. */
export function isPlaceAtLeast(one: StoredAt, other: StoredAt | undefined): boolean {
  if (other === undefined || one.block !== other.block) return one.block > (other?.block ?? -1);
  if (one.timestampMs !== other.timestampMs) return one.timestampMs > other.timestampMs;
  return one.uuid >= other.uuid;
}

/** Whether nothing that is up to the second position comes after the first one. */
export function isAtLeast(one: StreamPosition, other: StreamPosition): boolean {
  return [...other].every(([shard, place]) => {
    const own = one.get(shard);
    return own !== undefined && isPlaceAtLeast(own, place);
  });
}

/** Returns the position after both: on each server the later place. */
export function laterOf(one: StreamPosition, other: StreamPosition): StreamPosition {
  if (isAtLeast(one, other)) return one;
  const later = new Map(one);
  for (const [shard, place] of other) if (isPlaceAtLeast(place, one.get(shard))) later.set(shard, place);
  return later;
}

/** Later than every event, and early enough for ClickHouse. */
const TIME_MS_MAX = Date.UTC(2200, 0, 1);

const seconds = z.int().min(0);
const block = z.int().min(0);
const inBlock = [z.int(), z.guid()] as const;
const placeSchema = z.union([z.tuple([z.int().min(0), block]), z.tuple([z.int().min(0), block, ...inBlock])]);
const serversSchema = z
  .string()
  .refine((text) => serverNames(text).every((name) => serverName.safeParse(name).success));
const originSchema = z.tuple([serversSchema, z.string().regex(/^([0-9a-f]{8})+$/), z.int().min(0).max(TIME_MS_MAX)]);
const idSchema = z.tuple([seconds, placeSchema]).rest(placeSchema);
const namedIdSchema = z.tuple([seconds, originSchema, placeSchema]).rest(placeSchema);

/**
 * Returns the `id` of an event: a position, and when it was sent. It is no secret and grants no access.
 *
 * @param of whose position it is
 */
export function encodePosition(position: StreamPosition, nowMs: number, of?: StreamOrigin): string {
  const places = [...position].map(([shard, place]) =>
    isEndOfBlock(place) ? [shard, place.block] : [shard, place.block, place.timestampMs, place.uuid],
  );
  return tokenOf([Math.floor(nowMs / 1_000), ...(of ? [[of.server, of.database, of.throughMs]] : []), ...places]);
}

/** Returns what an `id` says; `undefined` when the text is no such id. */
export function decodePosition(id: string): StreamId | undefined {
  const content = parseToken(id);
  const numbered = idSchema.safeParse(content);
  if (numbered.success) {
    const [sentAt, ...places] = numbered.data;
    return { position: positionOf(places), sentAtMs: sentAt * 1_000, origin: undefined };
  }
  const named = namedIdSchema.safeParse(content);
  if (!named.success) return undefined;
  const [sentAt, [server, database, throughMs], ...places] = named.data;
  return { position: positionOf(places), sentAtMs: sentAt * 1_000, origin: { server, database, throughMs } };
}

function positionOf(places: readonly z.output<typeof placeSchema>[]): StreamPosition {
  return new Map(places.map(([shard, ...place]) => [shard, placeOf(place)]));
}

function placeOf([number, timestampMs, uuid]: readonly [number, number?, string?]): StoredAt {
  return timestampMs === undefined || uuid === undefined
    ? endOfBlock(number)
    : { block: number, timestampMs, uuid: uuid.toLowerCase() };
}
