import type { QueryRunner } from '../clickhouse/query-runner.ts';
import { type Sql, tables } from '../clickhouse/sql.ts';

/** How long a result is reused, in milliseconds: a deletion has to be in force within a second. */
const FRESH_MS = 300;

/** Deleted users whose data may still be stored. */
const PENDING = `
SELECT user_id, max(version) AS deleted_version
FROM ${tables.userDeletions}
GROUP BY user_id
HAVING deleted_version > max(erased_version)`;

const ANY_PENDING: Sql = { sql: `SELECT 1 FROM (${PENDING}) LIMIT 1`, params: {} };

/** The same as two arrays. ClickHouse evaluates equal scalars once. */
const PENDING_ARRAYS = `(SELECT (groupArray(user_id), groupArray(toInt64(deleted_version))) FROM (${PENDING}))`;

/**
 * Holds for events that were accepted before their user was deleted. The users come first, for the index on user_id;
 * the rest is a look-up per event, so that a page reads only its own events, however many deletions are pending.
 */
const HIDDEN: Sql = {
  sql: `user_id IN (SELECT user_id FROM (${PENDING}))
  AND toUnixTimestamp64Micro(received_at) <= transform(user_id, ${PENDING_ARRAYS}.1, ${PENDING_ARRAYS}.2, toInt64(-1))`,
  params: {},
};

/**
 * Returns the condition that the events of deleted users meet until they are erased; `undefined` when no deletion of
 * the workspace is pending, which is the usual case.
 */
export type HiddenCondition = (workspace: string) => Promise<Sql | undefined>;

interface CachedCondition {
  readonly queriedAt: number;
  readonly condition: Promise<Sql | undefined>;
}

/** Creates a look-up of pending deletions that runs at most one query per workspace in {@link FRESH_MS}. */
export function createHiddenCondition(
  queryRunner: Pick<QueryRunner, 'all'>,
  now: () => number = performance.now.bind(performance),
): HiddenCondition {
  const cache = new Map<string, CachedCondition>();

  async function query(workspace: string): Promise<Sql | undefined> {
    const rows = await queryRunner.all({ kind: 'pending_deletions', urgent: true, workspace, ...ANY_PENDING });
    return rows.length > 0 ? HIDDEN : undefined;
  }

  return async (workspace) => {
    const cached = cache.get(workspace);
    if (cached && now() - cached.queriedAt < FRESH_MS) return await cached.condition;
    const entry = { queriedAt: now(), condition: query(workspace) };
    cache.set(workspace, entry);
    try {
      return await entry.condition;
    } catch (error) {
      if (cache.get(workspace) === entry) cache.delete(workspace);
      throw error;
    }
  };
}
