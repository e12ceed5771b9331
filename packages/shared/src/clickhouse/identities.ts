// Whose an anonymous visitor is follows from the facts in `identity_links` (docs/design/decisions/0119-identity-is-a-fold.md).
//
// A fact counts until a deletion of its user has at least its version. Where somebody said whose the visitor is, the last of that
// counts, and no user means nobody. Else the first link does. All of it is a function of the facts and deletions, whatever the
// order in which they arrive.

/** The owner, from the facts of one visitor that count. Between equal versions the identifiers of the users decide. */
const OWNER = `if(
      max(said) = 1,
      argMaxIf(user_id, (version, user_id), said = 1),
      argMin(user_id, (version, user_id))
    )`;

/** Tables of one workspace, as a FROM names them. */
export interface OwnersOptions {
  readonly links: string;
  /** The pending deletions; undefined: there are none. Facts that older deletions hide are erased. */
  readonly pending: string | undefined;
  /** Chooses visitors, by `anonymous_id` alone: without all of its facts a visitor would get another owner. Default: all. */
  readonly where?: string;
}

/**
 * Returns a SELECT of visitors, each with its owner: `anonymous_id` and `user_id`, and of the fact that decides it `version` and `said`.
 * Those of nobody are left out. It goes through the facts in the order of the table: as an aggregate of a million visitors it would take
 * ten times the CPU, and eighty times the memory.
 */
export function ownersSql({ links, pending, where = '1' }: OwnersOptions): string {
  return `
SELECT anonymous_id, user_id, version, said
FROM (
  ${pending === undefined ? '' : countedDeletions(pending)}
  SELECT anonymous_id, user_id, version, said
  FROM ${links}
  WHERE (${where})${pending === undefined ? '' : ` AND ${COUNTS}`}
  ORDER BY anonymous_id, ${DECIDING_FIRST}
  LIMIT 1 BY anonymous_id
)
WHERE user_id != ''`;
}

/** The order of the facts of one visitor in which {@link OWNER} is the user of the first one. */
const DECIDING_FIRST =
  "said DESC, if(said = 1, -toInt64(version), toInt64(version)), if(said = 1, user_id, '') DESC, user_id";

/**
 * Returns a SELECT of the links to somebody else than the owner, where nobody has said whose the visitor is: `anonymous_id`, `user_id`, which
 * is the owner, `other_user_id`, and `version`, which is that of the first of these links.
 */
export function conflictsSql({ links, pending, where = '1' }: OwnersOptions & { readonly pending: string }): string {
  return `
SELECT anonymous_id, owner AS user_id, other_user_id, version
FROM (
  ${countedDeletions(pending)}
  SELECT
    anonymous_id,
    ${OWNER} AS owner,
    minMap([user_id], [version]) AS firsts
  FROM ${links}
  WHERE (${where}) AND ${COUNTS}
  GROUP BY anonymous_id
  HAVING max(said) = 0 AND length(firsts.1) > 1
)
ARRAY JOIN firsts.1 AS other_user_id, firsts.2 AS version
WHERE other_user_id != owner`;
}

/** What {@link COUNTS} compares with. */
function countedDeletions(pending: string): string {
  return `WITH (
    SELECT (groupArray(user_id), groupArray(deleted_version))
    FROM (SELECT user_id, max(version) AS deleted_version FROM ${pending} GROUP BY user_id)
  ) AS deletions`;
}

/** The condition that a fact counts. */
const COUNTS =
  "version > transform(user_id, arrayPushFront(deletions.1, ''), arrayPushFront(deletions.2, 0), toUInt64(0))";

/** Returns a condition for {@link ownersSql}: the visitors that may belong to some users. `users` compares `user_id` with them. */
export function visitorsOf(users: string, links: string): string {
  return `anonymous_id IN (SELECT anonymous_id FROM ${links} WHERE ${users})`;
}

/** Tables, as a FROM names them. */
export interface UnsettledOptions {
  readonly pending: string;
  /** The table `identity_deletions`. */
  readonly deletions: string;
}

/** Returns a SELECT of the deletions of users whose visitors may not be deleted yet: `workspace_id`, `user_id` and `version`. */
export function unsettledSql({ pending, deletions }: UnsettledOptions): string {
  return `
SELECT workspace_id, user_id, version
FROM (
  SELECT workspace_id, user_id, version, toDateTime64(0, 3, 'UTC') AS settled_at
  FROM ${pending}
  WHERE NOT startsWith(user_id, '\\xEF\\xBF\\xBF')
  UNION ALL
  SELECT workspace_id, user_id, version, settled_at
  FROM ${deletions}
  WHERE (workspace_id, user_id) IN (SELECT workspace_id, user_id FROM ${pending})
)
GROUP BY workspace_id, user_id, version
HAVING max(settled_at) = toDateTime64(0, 3, 'UTC')`;
}

export interface DeletedVisitorsOptions {
  readonly links: string;
  /** The table `identity_deletions`. */
  readonly deletions: string;
  /** A SELECT of deletions of users, as {@link unsettledSql} returns it. */
  readonly unsettled: string;
  /** Compares `user_id` of a link with the users of these deletions. */
  readonly ofUsers: string;
}

/**
 * Returns a SELECT of the visitors that are deleted with their users: `workspace_id`, `user_id`, which names the visitor as deletions
 * do, and `version`, which is that of the deletion of `deleted_user`. They are those that were the user's at that version.
 */
export function deletedVisitorsSql({ links, deletions, unsettled, ofUsers }: DeletedVisitorsOptions): string {
  const named = `SELECT workspace_id, anonymous_id FROM ${links} WHERE ${ofUsers}`;
  return `
SELECT workspace_id, concat('\\xEF\\xBF\\xBF', anonymous_id) AS user_id, deleted_version AS version, deleted_user
FROM (
  SELECT
    workspace_id,
    anonymous_id,
    deleted_user,
    deleted_version,
    ${OWNER} AS owner
  FROM (
    SELECT
      toString(facts.workspace_id) AS workspace_id,
      facts.anonymous_id AS anonymous_id,
      facts.user_id AS user_id,
      facts.version AS version,
      facts.said AS said,
      deleted.user_id AS deleted_user,
      deleted.version AS deleted_version,
      earlier.versions AS earlier_versions
    FROM (SELECT * FROM ${links} WHERE (workspace_id, anonymous_id) IN (${named})) AS facts
    INNER JOIN (
      SELECT DISTINCT
        ofUsers.workspace_id AS workspace_id, ofUsers.anonymous_id AS anonymous_id, unsettled.user_id AS user_id, unsettled.version AS version
      FROM (SELECT * FROM ${links} WHERE ${ofUsers}) AS ofUsers
      INNER JOIN (${unsettled}) AS unsettled
        ON unsettled.workspace_id = ofUsers.workspace_id AND unsettled.user_id = ofUsers.user_id
      WHERE ofUsers.version <= unsettled.version
    ) AS deleted ON deleted.workspace_id = facts.workspace_id AND deleted.anonymous_id = facts.anonymous_id
    LEFT JOIN (
      SELECT workspace_id, user_id, groupArray(version) AS versions
      FROM ${deletions}
      WHERE (workspace_id, user_id) IN (
        SELECT workspace_id, user_id FROM ${links} WHERE (workspace_id, anonymous_id) IN (${named})
      )
      GROUP BY workspace_id, user_id
    ) AS earlier ON earlier.workspace_id = facts.workspace_id AND earlier.user_id = facts.user_id
    WHERE facts.version <= deleted.version
  )
  WHERE NOT arrayExists(deletion -> deletion >= version AND deletion < deleted_version, earlier_versions)
  GROUP BY workspace_id, anonymous_id, deleted_user, deleted_version
)
WHERE owner = deleted_user`;
}
