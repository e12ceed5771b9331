// Whose an anonymous visitor is follows from the facts in `identity_links` (docs/design/decisions/0119-identity-is-a-fold.md).
//
// A fact counts until a deletion of its user has at least its version. Where somebody said whose the visitor is, the last of that
// counts, and no user means nobody. Else the first link does. All of it is a function of the facts and deletions, whatever the
// order in which they arrive.
//
// That a user became another one is such a fact as well (merged-user.ts): somebody said it. A deletion of either user ends it.

import { DELETED_BY_FACT_SQL, IS_MERGE_SQL, MERGED_USER_SQL } from '../rows/merged-user.ts';

/** The owner, from the facts of one visitor that count. Between equal versions the identifiers of the users decide. */
const OWNER = `if(
      max(said) = 1,
      argMaxIf(user_id, (version, user_id), said = 1),
      argMin(user_id, (version, user_id))
    )`;

/** Tables of one workspace, as a FROM names them. */
export interface OwnersOptions {
  readonly links: string;
  /** The pending deletions. Facts that older deletions hide are erased. */
  readonly pending: string;
  /** Chooses visitors, by `anonymous_id` alone: without all of its facts a visitor would get another owner. Default: all. */
  readonly where?: string;
}

/**
 * Returns a SELECT of visitors, each with its owner: `anonymous_id` and `user_id`, and of the fact that decides it `version` and `said`.
 * Those of nobody are left out. It goes through the facts in the order of the table: as an aggregate of a million visitors it would take
 * ten times the CPU, and eighty times the memory.
 *
 * @param options.pending undefined: it is known that there are none
 */
export function ownersSql({
  links,
  pending,
  where = '1',
}: Omit<OwnersOptions, 'pending'> & { readonly pending: string | undefined }): string {
  return `
SELECT anonymous_id, user_id, version, said
FROM (
  ${pending === undefined ? '' : countedDeletions(pending)}
  SELECT anonymous_id, user_id, version, said
  FROM ${links}
  WHERE (${where}) AND NOT ${IS_MERGE_SQL}${pending === undefined ? '' : ` AND ${COUNTS}`}
  ORDER BY anonymous_id, ${DECIDING_FIRST}
  LIMIT 1 BY anonymous_id
)
WHERE user_id != ''`;
}

/**
 * Returns a SELECT of what was said last of each merged user: `merged`, `person`, whom it became, and `merged_version`. Those that are taken
 * back are left out.
 */
export function saidMergesSql({ links, pending, where = '1' }: OwnersOptions): string {
  return `
  ${countedDeletions(pending)}
  SELECT ${MERGED_USER_SQL} AS merged, argMax(user_id, (version, user_id)) AS person, max(version) AS merged_version
  FROM ${links}
  WHERE (${where}) AND ${IS_MERGE_SQL} AND said = 1 AND ${COUNTS} AND version > ${deletedVersion(MERGED_USER_SQL)}
  GROUP BY merged
  HAVING person != ''`;
}

/** Returns a SELECT of those that count, of merges as {@link saidMergesSql} returns them: where nobody merged the person into somebody else. */
export function mergesSql(said: string): string {
  return `
  SELECT arrayJoin(became_this) AS merged, person
  FROM (
    SELECT pair.1 AS person, groupArrayIf(pair.2, pair.2 != '') AS became_this, countIf(pair.2 = '') AS is_merged
    FROM (SELECT arrayJoin([(person, merged), (merged, '')]) AS pair FROM ${said})
    GROUP BY person
  )
  WHERE NOT is_merged`;
}

/** The order of the facts of one visitor in which {@link OWNER} is the user of the first one. */
const DECIDING_FIRST =
  "said DESC, if(said = 1, -toInt64(version), toInt64(version)), if(said = 1, user_id, '') DESC, user_id";

/**
 * Returns a SELECT of the links to somebody else than the owner, where nobody has said whose the visitor is: `anonymous_id`, `user_id`, which
 * is the owner, `other_user_id`, and `version`, which is that of the first of these links.
 */
export function conflictsSql({ links, pending, where = '1' }: OwnersOptions): string {
  return `
SELECT anonymous_id, owner AS user_id, other_user_id, version
FROM (
  ${countedDeletions(pending)}
  SELECT
    anonymous_id,
    ${OWNER} AS owner,
    minMap([user_id], [version]) AS firsts
  FROM ${links}
  WHERE (${where}) AND NOT ${IS_MERGE_SQL} AND ${COUNTS}
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

/** SQL for the version of the pending deletion of a user; 0 without one. */
function deletedVersion(user: string): string {
  return `transform(${user}, arrayPushFront(deletions.1, ''), arrayPushFront(deletions.2, 0), toUInt64(0))`;
}

/** The condition that a fact counts, as far as its user decides. */
const COUNTS = `version > ${deletedVersion('user_id')}`;

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
 * Returns a SELECT of who is deleted with the users: their visitors, and who was merged into them. `workspace_id`, `user_id`, which is the
 * merged user or names the visitor as deletions do, and `version`, which is that of the deletion of `deleted_user`. They are those that were
 * the user's at that version. The visitors of the merged ones are not among them: they are deleted with these.
 */
export function deletedVisitorsSql({ links, deletions, unsettled, ofUsers }: DeletedVisitorsOptions): string {
  const named = `SELECT workspace_id, anonymous_id FROM ${links} WHERE ${ofUsers}`;
  // Nothing but what somebody said is about a merged user.
  const facts = `SELECT * FROM ${links} WHERE (workspace_id, anonymous_id) IN (${named}) AND (said = 1 OR NOT ${IS_MERGE_SQL})`;
  const deletionsOf = (user: string, condition: string) => `(
      SELECT workspace_id, user_id, groupArray(version) AS versions
      FROM ${deletions}
      WHERE (workspace_id, user_id) IN (
        SELECT workspace_id, ${user} FROM ${links} WHERE (workspace_id, anonymous_id) IN (${named}) AND ${condition}
      )
      GROUP BY workspace_id, user_id
    )`;
  return `
SELECT workspace_id, ${DELETED_BY_FACT_SQL} AS user_id, deleted_version AS version, deleted_user
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
      arrayConcat(earlier.versions, earlier_of_merged.versions) AS earlier_versions
    FROM (SELECT *, if(${IS_MERGE_SQL}, ${MERGED_USER_SQL}, '') AS merged FROM (${facts})) AS facts
    INNER JOIN (
      SELECT DISTINCT
        ofUsers.workspace_id AS workspace_id, ofUsers.anonymous_id AS anonymous_id, unsettled.user_id AS user_id, unsettled.version AS version
      FROM (SELECT * FROM ${links} WHERE ${ofUsers}) AS ofUsers
      INNER JOIN (${unsettled}) AS unsettled
        ON unsettled.workspace_id = ofUsers.workspace_id AND unsettled.user_id = ofUsers.user_id
      WHERE ofUsers.version <= unsettled.version
    ) AS deleted ON deleted.workspace_id = facts.workspace_id AND deleted.anonymous_id = facts.anonymous_id
    LEFT JOIN ${deletionsOf('user_id', '1')} AS earlier
      ON earlier.workspace_id = facts.workspace_id AND earlier.user_id = facts.user_id
    LEFT JOIN ${deletionsOf(MERGED_USER_SQL, IS_MERGE_SQL)} AS earlier_of_merged
      ON earlier_of_merged.workspace_id = facts.workspace_id AND earlier_of_merged.user_id = facts.merged
    WHERE facts.version <= deleted.version
  )
  WHERE NOT arrayExists(deletion -> deletion >= version AND deletion < deleted_version, earlier_versions)
  GROUP BY workspace_id, anonymous_id, deleted_user, deleted_version
)
WHERE owner = deleted_user`;
}
