import { crc32 } from 'node:zlib';

/**
 * The hashes that decide where a row goes: to the partition `hash % KAFKA_PARTITIONS` of its topic, and in a cluster of
 * ClickHouse to the shard that holds this partition. Never change them. A repeat of an event would go through another
 * partition than its original, and a cluster would look for rows on the wrong shard.
 *
 * Each is CRC-32 of a text as UTF-8, which ClickHouse computes as well, so that a query can tell the shard of a row. It
 * spreads structured uuids as evenly as xxHash64, and takes 0.16 µs.
 */

/**
 * Returns the hash of an event, from 0 to 2^32 - 1. It covers the whole uuid: versions 1 and 6 have their random bits
 * elsewhere than versions 4 and 7.
 *
 * @param uuid in lower case, as rows have it
 */
export function eventHash(uuid: string): number {
  return crc32(uuid);
}

/** Returns {@link eventHash} as ClickHouse computes it, of an expression for the uuid. */
export function eventHashSql(uuid: string): string {
  return `CRC32(toString(${uuid}))`;
}

/**
 * Returns the hash of a user or an organization, from 0 to 2^32 - 1. For a row of `entities`, ClickHouse computes it as
 * `CRC32(concat(workspace_id, '\0', kind, '\0', id))`.
 */
export function entityHash(workspace: string, kind: string, id: string): number {
  return crc32(`${workspace}\0${kind}\0${id}`);
}
