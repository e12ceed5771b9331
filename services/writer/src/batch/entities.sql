-- What a batch stores of users and organizations. store-statements.ts has what is generated.

-- name: store-seen-in-deleted-events
-- An event shows that its organization exists, even if the event's user was deleted meanwhile. Otherwise the
-- organization would depend on whether the event or the deletion was stored first.
INSERT INTO entities (workspace_id, kind, id, first_seen_at, last_seen_at, version)
SELECT
  staged_events.workspace_id,
  'organization',
  group_id,
  min(timestamp),
  max(timestamp),
  max(toUnixTimestamp64Micro(received_at))
FROM staged_events
INNER JOIN deletions ON deletions.workspace_id = staged_events.workspace_id AND deletions.user_id = person
WHERE group_id != '' AND toUnixTimestamp64Micro(received_at) <= deleted_version
GROUP BY staged_events.workspace_id, group_id

-- name: store-identity-deletions
-- Each deletion of a user alone: whose a visitor is depends on those before the last one, too. Before store-pending-deletions: what is pending and
-- stands nowhere as unsettled would be erased with its links.
INSERT INTO identity_deletions (workspace_id, user_id, version)
SELECT DISTINCT workspace_id, id, version
FROM staged_changes
WHERE kind = 'user' AND operation = 'delete' AND NOT startsWith(id, '\xEF\xBF\xBF')

-- name: store-deletions
-- Before all further inserts, so that they see the deletions of this batch.
INSERT INTO user_deletions (workspace_id, user_id, version)
SELECT workspace_id, id, max(version)
FROM staged_changes
WHERE kind = 'user' AND operation = 'delete'
GROUP BY workspace_id, id

-- name: store-pending-deletions
-- After store-deletions has ended: an insert that does not know the deletion began before `stored_at`.
INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at)
SELECT workspace_id, id, max(version), now64(3)
FROM staged_changes
WHERE kind = 'user' AND operation = 'delete'
GROUP BY workspace_id, id

-- name: store-links
-- What says whose visitors are. Of what a deletion of its user hides, that alone which a deletion still needs, whose visitors are not
-- deleted yet (0060-identity-deletions.sql). The deletions are read here and not before: this insert must know every one that may be
-- erased before it ends. Only settled ones may be, and `identity_deletions` alone says which are: of one that is stored by another writer
-- now, `user_deletions` may be there before it.
INSERT INTO identity_links (workspace_id, anonymous_id, user_id, version, said)
WITH
  -- What says whom a user became is hidden by deletions of this user as well (packages/shared/src/rows/merged-user.ts).
  facts AS (
    SELECT DISTINCT
      workspace_id, id, user_id, version, operation,
      if(startsWith(id, '\xEF\xBF\xBF'), substring(id, 4), '') AS merged
    FROM staged_changes
    WHERE kind = 'visitor'
  ),
  deletions AS (
    SELECT workspace_id, user_id, maxIf(version, is_settled) AS settled_version, maxIf(version, NOT is_settled) AS unsettled_version
    FROM (
      SELECT workspace_id, user_id, version, max(settled_at) != toDateTime64(0, 3, 'UTC') AS is_settled
      FROM identity_deletions
      WHERE (workspace_id, user_id) IN (SELECT workspace_id, arrayJoin([user_id, merged]) FROM facts)
      GROUP BY workspace_id, user_id, version
    )
    GROUP BY workspace_id, user_id
  )
SELECT facts.workspace_id, id, facts.user_id, facts.version, operation = 'say'
FROM facts
LEFT JOIN deletions AS of_user ON of_user.workspace_id = facts.workspace_id AND of_user.user_id = facts.user_id
LEFT JOIN deletions AS of_merged ON of_merged.workspace_id = facts.workspace_id AND of_merged.user_id = facts.merged
WHERE (facts.version > of_user.settled_version OR facts.version <= of_user.unsettled_version)
  AND (facts.version > of_merged.settled_version OR facts.version <= of_merged.unsettled_version)

-- name: store-sightings
INSERT INTO user_sightings (workspace_id, user_id, version, group_id)
SELECT DISTINCT workspace_id, id, version, group_id
FROM staged_changes
WHERE kind = 'user' AND operation = 'seen'
