import { z } from 'zod';
import { parseToken, tokenOf } from '../cursor.ts';

/*
 * A position in the order of storage. Each insert into `events` gets the next block number at the moment at which its rows
 * become visible (docs/design/decisions/0025-order-of-storage.md), so whoever has seen a block has seen all lower ones. Inside
 * a block, events are ordered by timestamp and uuid. Each server of a cluster counts blocks of its own: a position names
 * a place for each of them.
 *
 * Example. A position says block 7, 12:00:05.000, uuid 42…. The stream goes on with the events of block 7 that have a
 * later timestamp, or this one and a higher uuid; then comes block 8, with events of any time.
 */

/** A place on one server: everything up to and with the event of this key in the block, and all lower blocks. */
export interface StoredAt {
  readonly block: number;
  readonly timestampMs: number;
  readonly uuid: string;
}

/** A place for each server, by its number; without a cluster there is one, number 0. */
export type StreamPosition = ReadonlyMap<number, StoredAt>;

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

const seconds = z.int().min(0);
const block = z.int().min(0);
const placeSchema = z.union([z.tuple([z.int().min(0), block]), z.tuple([z.int().min(0), block, z.int(), z.guid()])]);
const sortKeySchema = z.tuple([seconds, placeSchema]).rest(placeSchema);

/** Returns the `id` of an event: a position, and when it was sent. It is no secret and grants no access. */
export function encodePosition(position: StreamPosition, nowMs: number): string {
  const places = [...position].map(([shard, place]) =>
    isEndOfBlock(place) ? [shard, place.block] : [shard, place.block, place.timestampMs, place.uuid],
  );
  return tokenOf([Math.floor(nowMs / 1_000), ...places]);
}

/** Returns the position in an `id`, and when it was sent; `undefined` when the text is no such id. */
export function decodePosition(id: string): { position: StreamPosition; sentAtMs: number } | undefined {
  const result = sortKeySchema.safeParse(parseToken(id));
  if (!result.success) return undefined;
  const [sentAt, ...places] = result.data;
  const position = new Map(
    places.map(([shard, number, timestampMs, uuid]) => [
      shard,
      timestampMs === undefined || uuid === undefined
        ? endOfBlock(number)
        : { block: number, timestampMs, uuid: uuid.toLowerCase() },
    ]),
  );
  return { position, sentAtMs: sentAt * 1_000 };
}
