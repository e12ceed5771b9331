/** Where a statement has the users and visitors whose deletions it looks up. */
export interface Users {
  /** The column with their identifiers. */
  readonly column: string;
  /** What follows FROM. */
  readonly from: string;
}

/**
 * Returns SQL for the last deletions of some users, to be named `deletions` by a WITH: a scalar, so that ClickHouse reads it
 * once, and without a join, which would cost a small batch more than its rows.
 */
export function lastDeletionsOf({ column, from }: Users): string {
  return `(
    SELECT (groupArray(user), groupArray(deleted_version))
    FROM (
      SELECT concat(workspace_id, '\\0', user_id) AS user, max(version) AS deleted_version
      FROM user_deletions
      PREWHERE user_hash IN (SELECT cityHash64(${column}) FROM ${from})
      WHERE user_id IN (SELECT ${column} FROM ${from})
      GROUP BY user
      SETTINGS use_index_for_in_with_subqueries_max_values = 1000
    )
  )`;
}

/** Returns SQL for the version of the last deletion of the user in a column, from `deletions`; 0 without one. */
export function deletedVersionOf({ column }: Users): string {
  // The first element is nobody: transform takes no empty arrays.
  return `transform(
    concat(workspace_id, '\\0', ${column}), arrayPushFront(deletions.1, ''), arrayPushFront(deletions.2, 0), toUInt64(0)
  )`;
}
