-- A submission without events that names a user and an organization shows that they belong together. This keeps when, for
-- users who came back after a deletion: 0005-user-sightings.sql explains it. Empty: no organization was named.
ALTER TABLE user_sightings
  ADD COLUMN IF NOT EXISTS group_id String,
  MODIFY ORDER BY (workspace_id, user_id, version, group_id)
