-- The states of dead letters in the order of their time, without their rows: for lists, and for the numbers of GET /pipeline. ClickHouse
-- writes it with each part, by insert, merge and erasure (docs/design/decisions/0088-audit-item-by-item.md).
ALTER TABLE dead_letters
  ADD PROJECTION IF NOT EXISTS by_time (
    SELECT workspace_id, recorded_at, id, state_at, replayed_at, kind, topic, partition, offset, line, reason, user_id, version,
      is_of_one_workspace, client, row_bytes
    ORDER BY workspace_id, recorded_at, id
  )
