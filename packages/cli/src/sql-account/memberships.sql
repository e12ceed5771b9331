-- Beside the views of deploy/clickhouse/sql/views.sql. A row of a user whose deletion waits for its erasure may have times from before
-- it: the last change stands in for them until then.
CREATE OR REPLACE VIEW sluice_sql.memberships (
  user_id String COMMENT 'The user',
  organization_id String COMMENT 'An organization that the user belongs to',
  first_seen_at DateTime64(3, 'UTC') COMMENT 'When the two were first seen together',
  last_seen_at DateTime64(3, 'UTC') COMMENT 'When the two were last seen together'
)
DEFINER = sluice_sql_owner SQL SECURITY DEFINER AS
SELECT
  id AS user_id,
  other_id AS organization_id,
  if(is_deleted, changed_at, first_seen_at) AS first_seen_at,
  if(is_deleted, changed_at, last_seen_at) AS last_seen_at
FROM (
  SELECT
    id,
    other_id,
    min(first_seen_at) AS first_seen_at,
    max(last_seen_at) AS last_seen_at,
    toDateTime64(fromUnixTimestamp64Micro(toInt64(max(version)), 'UTC'), 3, 'UTC') AS changed_at,
    id IN (SELECT user_id FROM sluice.pending_deletions) AS is_deleted
  FROM sluice.entities
  WHERE kind = 'membership'
  GROUP BY id, other_id
)
COMMENT 'Which users belong to which organizations';
