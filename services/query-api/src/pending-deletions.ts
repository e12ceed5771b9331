import { type Sql, tables } from './sql.ts';
import type { Store } from './store.ts';

/** How long an answer is used again: a deletion is to be in force within a second. */
const FRESH_MS = 300;

/** Deleted users of whom something may still be stored. */
const PENDING = `
SELECT user_id, max(version) AS deleted_version
FROM ${tables.userDeletions}
GROUP BY user_id
HAVING deleted_version > max(erased_version)`;

const ANY_PENDING = `SELECT 1 FROM (${PENDING}) LIMIT 1`;

/**
 * Hides what was accepted before its user was deleted. The second sub-select is of the events that came after: of users
 * deleted moments ago, so it is small, and the index on user_id finds them.
 */
const NOT_DELETED: Sql = {
  sql: `user_id NOT IN (SELECT user_id FROM (${PENDING}))
  OR (user_id, received_at) IN (
    SELECT user_id, received_at
    FROM (
      SELECT user_id, received_at FROM ${tables.events} WHERE user_id IN (SELECT user_id FROM (${PENDING}))
    ) AS events
    INNER JOIN (${PENDING}) AS deletions USING (user_id)
    WHERE toUnixTimestamp64Micro(received_at) > deleted_version
  )`,
  params: {},
};

/**
 * Gives the condition that hides the events of deleted users while they are being erased; nothing when no deletion of
 * the workspace is pending, which is the rule.
 */
export type DeletionConditions = (workspace: string) => Promise<readonly Sql[]>;

export function createDeletionConditions(
  store: Store,
  now: () => number = performance.now.bind(performance),
): DeletionConditions {
  const answers = new Map<string, { readonly askedAt: number; readonly conditions: Promise<readonly Sql[]> }>();

  async function ask(workspace: string): Promise<readonly Sql[]> {
    const query = { kind: 'pending_deletions', urgent: true, workspace, sql: ANY_PENDING, params: {} } as const;
    const found = await store.all(query);
    return found.length > 0 ? [NOT_DELETED] : [];
  }

  return async (workspace) => {
    const known = answers.get(workspace);
    if (known && now() - known.askedAt < FRESH_MS) return await known.conditions;
    const answer = { askedAt: now(), conditions: ask(workspace) };
    answers.set(workspace, answer);
    try {
      return await answer.conditions;
    } catch (error) {
      if (answers.get(workspace) === answer) answers.delete(workspace);
      throw error;
    }
  };
}
