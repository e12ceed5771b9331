-- Besides users and organizations, `entities` has two rows for each pair of them that some event names together, so that
-- both lists are look-ups: of the kind `membership`, where `id` is the user and `other_id` the organization, and of the
-- kind `member`, where `id` is the organization and `other_id` the user. For users and organizations it is empty.
-- In a table of their own, storing them would cost each batch another insert.
ALTER TABLE entities
  ADD COLUMN IF NOT EXISTS other_id String,
  MODIFY ORDER BY (workspace_id, kind, id, other_id),
  -- The primary key cannot grow, so this finds the page in the middle of a long list.
  ADD INDEX IF NOT EXISTS other_id_range other_id TYPE minmax GRANULARITY 1
