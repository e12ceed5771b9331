import type { Statement } from '../clickhouse/statement.ts';
import { deletedVersionOf, lastDeletionsOf, USERS_OF_CHANGES, USERS_OF_EVENTS } from './last-deletions.ts';

// Users, organizations, and which of them belong together: 0013-memberships.sql explains the kinds.
//
// In the row of a user, `other_id` is the deletion after which the row begins: the version of the last one that the writer
// knows, or empty. So what was seen before a deletion and after it is never merged into one row. Deletions are looked up
// only for batches with users who were ever deleted, and here rather than before: this insert must know every deletion
// that may be erased before it ends. A row that was stored before its writer knew the deletion may hold times from before
// and after; the erasure replaces it (store-returned-users).

/** SQL for the deletion after which the row of a user begins, in a batch whose users were never deleted. */
const NO_DELETION = "'' AS deletion";

const DELETION_OF_EVENT = deletionBefore(
  'toUnixTimestamp64Micro(received_at)',
  lastDeletionsOf(USERS_OF_EVENTS),
  deletedVersionOf(USERS_OF_EVENTS),
);
const DELETION_OF_CHANGE = deletionBefore(
  "if(kind = 'user', staged_changes.version, 0)",
  lastDeletionsOf(USERS_OF_CHANGES),
  deletedVersionOf(USERS_OF_CHANGES),
);

function deletionBefore(version: string, deletions: string, deletedVersion: string): string {
  return `${deletions} AS deletions,
  ${deletedVersion} AS deleted_version,
  if(deleted_version > 0 AND ${version} > deleted_version, toString(deleted_version), '') AS deletion`;
}

/**
 * Repeats were dropped from the staged events, so a user or an organization that only a repeat names is not stored. Runs
 * before store-events: after a crash between the two, both run again, and no stored event lacks its user.
 */
function seenInEvents(deletion: string): string {
  return `
INSERT INTO entities (workspace_id, kind, id, other_id, first_seen_at, last_seen_at, version)
SELECT
  workspace_id,
  entity.1 AS kind,
  entity.2 AS id,
  entity.3 AS other_id,
  min(first_seen_at),
  max(last_seen_at),
  max(version)
FROM (
  WITH
  ${deletion}
  SELECT
    workspace_id,
    min(timestamp) AS first_seen_at,
    max(timestamp) AS last_seen_at,
    max(toUnixTimestamp64Micro(received_at)) AS version,
    arrayJoin(multiIf(
      user_id = '', [('organization', group_id, '')],
      group_id = '', [('user', user_id, deletion)],
      [
        ('user', user_id, deletion), ('organization', group_id, ''),
        ('membership', user_id, group_id), ('member', group_id, user_id)
      ]
    )) AS entity
  FROM staged_events
  WHERE user_id != '' OR group_id != ''
  GROUP BY workspace_id, user_id, group_id, deletion
)
GROUP BY workspace_id, kind, id, other_id`;
}

/** The row of a user names the organization of its submission. */
function seenInChanges(deletion: string): string {
  return `
INSERT INTO entities (workspace_id, kind, id, other_id, first_seen_at, last_seen_at, version)
WITH
  ${deletion}
SELECT
  workspace_id,
  entity.1 AS entity_kind,
  entity.2 AS entity_id,
  entity.3 AS other_id,
  fromUnixTimestamp64Milli(toInt64(intDiv(min(version), 1000)), 'UTC'),
  fromUnixTimestamp64Milli(toInt64(intDiv(max(version), 1000)), 'UTC'),
  max(staged_changes.version)
FROM staged_changes
ARRAY JOIN if(
  kind = 'user' AND group_id != '',
  [('user', id, deletion), ('membership', id, group_id), ('member', group_id, id)],
  [(toString(kind), id, deletion)]
) AS entity
WHERE operation = 'seen'
GROUP BY workspace_id, entity_kind, entity_id, other_id`;
}

export const STORE_SEEN = {
  'store-seen-in-events': { name: 'store-seen-in-events', sql: seenInEvents(NO_DELETION) },
  'store-seen-in-events-since-deletions': {
    name: 'store-seen-in-events-since-deletions',
    sql: seenInEvents(DELETION_OF_EVENT),
  },
  'store-seen-in-changes': { name: 'store-seen-in-changes', sql: seenInChanges(NO_DELETION) },
  'store-seen-in-changes-since-deletions': {
    name: 'store-seen-in-changes-since-deletions',
    sql: seenInChanges(DELETION_OF_CHANGE),
  },
} as const satisfies Readonly<Record<string, Statement>>;
