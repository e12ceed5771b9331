import type { Checksum, ComparedRow, ComparedServer, LeftOut, Part } from './compared-server.ts';

/** How many rows a bucket of keys has about, where keys are told apart. */
const ROWS_OF_BUCKET = 128;

/** How many buckets there are at most: a line of the result for each. */
const BUCKETS_MAX = 2 ** 18;

/** How many rows of each server are held in memory at a time, about. */
const ROWS_AT_ONCE = 200_000;

/** A value of each of the two servers. */
export type Both<Value> = readonly [Value, Value];

/** The rows of both servers with one key, where they are not the same. */
export interface DifferentKey {
  readonly workspace: string;
  readonly key: readonly (string | number)[];
  readonly rows: Both<readonly ComparedRow[]>;
}

export type Checksums = ReadonlyMap<number, Checksum>;

/** Two servers that are asked for the same, at the same time. */
export type Servers = Both<ComparedServer>;

/** What both servers say to a question. @throws what `ask` throws */
export async function ofBoth<Server, Value>([one, other]: Both<Server>, ask: (server: Server) => Promise<Value>) {
  return await Promise.all([ask(one), ask(other)]);
}

/** Returns into how many buckets the keys of so many rows are divided. */
export function bucketsFor(rows: number): number {
  return Math.max(1, Math.min(BUCKETS_MAX, 2 ** Math.ceil(Math.log2(Math.max(1, rows) / ROWS_OF_BUCKET))));
}

/** Returns the buckets in which two servers differ. */
export function differentBuckets([one, other]: Both<Checksums>): number[] {
  const isSame = (bucket: number) => {
    const [mine, theirs] = [one.get(bucket), other.get(bucket)];
    return mine?.rows === theirs?.rows && mine?.checksum === theirs?.checksum;
  };
  return [...new Set([...one.keys(), ...other.keys()])].filter((bucket) => !isSame(bucket)).sort((a, b) => a - b);
}

export function rowsIn(checksums: Checksums): number {
  return checksums.values().reduce((sum, { rows }) => sum + rows, 0);
}

/**
 * Finds the keys in which two servers differ, some at a time. Those of rows that are left out on one of them are among these.
 *
 * @param checksums of the part, which are different
 * @throws ClickHouse's errors
 */
export async function* differentKeys(
  servers: Servers,
  part: Part,
  leftOut: LeftOut,
  checksums: Both<Checksums>,
): AsyncGenerator<readonly DifferentKey[]> {
  const rows = Math.max(...checksums.map(rowsIn));
  const fine = { ...part, buckets: bucketsFor(rows) };
  const isFine = fine.buckets <= part.buckets;
  const found = isFine ? checksums : await ofBoth(servers, (server) => server.checksums(fine, leftOut));
  const divided = isFine ? part : fine;
  const buckets = differentBuckets(found);
  const atOnce = Math.max(1, Math.floor((ROWS_AT_ONCE * divided.buckets) / Math.max(1, rows)));
  for (let at = 0; at < buckets.length; at += atOnce) {
    const chosen = buckets.slice(at, at + atOnce);
    const [one, other] = await ofBoth(servers, (server) => server.rows(divided, leftOut, chosen));
    yield pair(one, other);
  }
}

function pair(one: readonly ComparedRow[], other: readonly ComparedRow[]): DifferentKey[] {
  const [mine, theirs] = [byKey(one), byKey(other)];
  return [...new Set([...mine.keys(), ...theirs.keys()])].flatMap((text) => {
    const rows = [mine.get(text) ?? [], theirs.get(text) ?? []] as const;
    const [first] = [...rows[0], ...rows[1]];
    if (!first || contentOf(rows[0]) === contentOf(rows[1])) return [];
    return [{ workspace: first.workspace, key: first.key, rows }];
  });
}

function byKey(rows: readonly ComparedRow[]): Map<string, ComparedRow[]> {
  return Map.groupBy(rows, ({ workspace, key }) => JSON.stringify([workspace, ...key]));
}

/** A repeat that is not merged yet counts as another row. */
export function contentOf(rows: readonly ComparedRow[]): string {
  return rows
    .map(({ content }) => content)
    .sort()
    .join();
}
