-- The rows of `entities` in the order of their times, for lists of those seen first and last. ClickHouse writes them with
-- each part, by insert, merge and erasure (docs/decisions/0026-lists-by-time.md).
ALTER TABLE entities
  ADD PROJECTION IF NOT EXISTS by_first_seen (
    SELECT workspace_id, kind, first_seen_at, id ORDER BY workspace_id, kind, first_seen_at, id
  ),
  ADD PROJECTION IF NOT EXISTS by_last_seen (
    SELECT workspace_id, kind, last_seen_at, id ORDER BY workspace_id, kind, last_seen_at, id
  )
