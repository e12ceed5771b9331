-- A stored event that the deletion of its own user or visitor hides is no original: an event that is sent again after that
-- deletion is new, whomever it names. find-deletions explains the look-up.
CREATE OR REPLACE TEMPORARY TABLE originals ENGINE = Memory AS
SELECT originals.*
FROM originals
LEFT JOIN (
  SELECT workspace_id, user_id, max(version) AS deleted_version
  FROM user_deletions
  PREWHERE user_hash IN (SELECT cityHash64(person) FROM originals)
  WHERE user_id IN (SELECT person FROM originals)
  GROUP BY workspace_id, user_id
  SETTINGS use_index_for_in_with_subqueries_max_values = 1000
) AS deletions ON deletions.workspace_id = originals.workspace_id AND deletions.user_id = person
WHERE toUnixTimestamp64Micro(received_at) > deleted_version
