import type { RequestQueries } from '../request-queries.ts';
import type { Sql } from '../sql.ts';
import type { Tables } from '../tables.ts';

/** The last deletions of some users, by their versions in microseconds. Nothing of a user up to this version counts. */
export class LastDeletions {
  readonly #versions: ReadonlyMap<string, number>;

  constructor(versions: Iterable<readonly [user: string, version: number]>) {
    this.#versions = new Map(versions);
  }

  /** Whether a user was ever deleted. */
  has(user: string): boolean {
    return this.#versions.has(user);
  }

  /**
   * Whether what is stored of a user may hold times from before the last deletion.
   *
   * @param begin the version of the deletion after which the row begins, 0 without one
   */
  precede(user: string, begin: number): boolean {
    return begin < (this.#versions.get(user) ?? 0);
  }

  /** Whether something of a user that was submitted with a version is hidden. */
  hide(user: string, version: number): boolean {
    return version <= (this.#versions.get(user) ?? 0);
  }
}

const NO_DELETIONS = new LastDeletions([]);

/**
 * How old deletions may be, in milliseconds. Queries beside them may wait for slots, and a deletion is in force within a
 * second.
 */
export const DELETIONS_FRESH_MS = 500;

/** Reads something, and at the same time the last deletions of some users; these again if the rest took long. */
export async function withDeletions<Found>(
  queries: RequestQueries,
  users: readonly string[],
  read: () => Promise<Found>,
): Promise<readonly [Found, LastDeletions]> {
  if (users.length === 0) return [await read(), NO_DELETIONS];
  const startedAt = performance.now();
  const [found, deletions] = await Promise.all([read(), readDeletions(queries, users)]);
  const isFresh = performance.now() - startedAt <= DELETIONS_FRESH_MS;
  return [found, isFresh ? deletions : await readDeletions(queries, users)];
}

async function readDeletions(queries: RequestQueries, users: readonly string[]): Promise<LastDeletions> {
  const query = (tables: Tables): Sql => ({ sql: lastDeletions(tables), params: { ids: users } });
  return new LastDeletions((await queries.all('entity_deletions', query)) as [string, number][]);
}

const AMONG_IDS = 'user_id IN {ids:Array(String)}';

/**
 * Returns SQL for the last deletion of those who were ever deleted and meet a condition on `user_id`: `id` and
 * `deleted_version`. Default: those of `ids`.
 */
export function lastDeletions(tables: Tables, condition = AMONG_IDS): string {
  return `
  SELECT user_id AS id, toInt64(max(version)) AS deleted_version
  FROM ${tables.userDeletions}
  WHERE ${condition}
  GROUP BY user_id`;
}

/**
 * Returns SQL for the version of the last deletion of the user in `column`, who meets a condition on `user_id`; 0 without
 * one. Default: one of `ids`.
 */
export function lastDeletionOf(tables: Tables, column: string, condition = AMONG_IDS): string {
  // A scalar, which ClickHouse reads once. The first element is nobody: transform takes no empty arrays.
  const deletions = `(SELECT (groupArray(id), groupArray(deleted_version)) FROM (${lastDeletions(tables, condition)}))`;
  return `transform(${column}, arrayPushFront(${deletions}.1, ''), arrayPushFront(${deletions}.2, 0), toInt64(0))`;
}

/** Returns SQL for the version of the last deletion of the user `id`; 0 without one. */
export function lastDeletion(tables: Tables): string {
  return `(SELECT toInt64(max(version)) FROM ${tables.userDeletions} WHERE user_id = {id:String})`;
}

/** Returns SQL for the users that were ever deleted and meet a condition on `user_id`. */
export function deletedUsers(tables: Tables, condition: string): string {
  return `SELECT user_id FROM ${tables.userDeletions} WHERE ${condition}`;
}
