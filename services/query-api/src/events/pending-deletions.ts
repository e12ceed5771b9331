import type { Store } from '../clickhouse/query-runner.ts';
import { type Sql, tables } from '../clickhouse/sql.ts';

/** How long an answer is used again: a deletion is to be in force within a second. */
const FRESH_MS = 300;

/** Deleted users of whom something may still be stored. */
const PENDING = `
SELECT user_id, max(version) AS deleted_version
FROM ${tables.userDeletions}
GROUP BY user_id
HAVING deleted_version > max(erased_version)`;

const ANY_PENDING = `SELECT 1 FROM (${PENDING}) LIMIT 1`;

/** The same as two arrays. ClickHouse looks the same scalar up once. */
const PENDING_ARRAYS = `(SELECT (groupArray(user_id), groupArray(toInt64(deleted_version))) FROM (${PENDING}))`;

/**
 * Holds of what was accepted before its user was deleted. The users come first for the index on user_id; the rest is a
 * look-up for each event, so that a page reads nothing but itself, however many deletions are pending.
 */
const HIDDEN: Sql = {
  sql: `user_id IN (SELECT user_id FROM (${PENDING}))
  AND toUnixTimestamp64Micro(received_at) <= transform(user_id, ${PENDING_ARRAYS}.1, ${PENDING_ARRAYS}.2, toInt64(-1))`,
  params: {},
};

/**
 * Gives the condition that the events of deleted users meet while they are being erased; nothing when no deletion of
 * the workspace is pending, which is the rule.
 */
export type HiddenCondition = (workspace: string) => Promise<readonly [Sql?]>;

export function createHiddenCondition(
  store: Pick<Store, 'all'>,
  now: () => number = performance.now.bind(performance),
): HiddenCondition {
  const answers = new Map<string, { readonly askedAt: number; readonly condition: Promise<readonly [Sql?]> }>();

  async function ask(workspace: string): Promise<readonly [Sql?]> {
    const query = { kind: 'pending_deletions', urgent: true, workspace, sql: ANY_PENDING, params: {} } as const;
    const found = await store.all(query);
    return found.length > 0 ? [HIDDEN] : [];
  }

  return async (workspace) => {
    const known = answers.get(workspace);
    if (known && now() - known.askedAt < FRESH_MS) return await known.condition;
    const answer = { askedAt: now(), condition: ask(workspace) };
    answers.set(workspace, answer);
    try {
      return await answer.condition;
    } catch (error) {
      if (answers.get(workspace) === answer) answers.delete(workspace);
      throw error;
    }
  };
}
