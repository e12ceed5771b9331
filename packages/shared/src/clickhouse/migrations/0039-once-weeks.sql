-- What is set once has rows of its own beside what is set and removed, because a deletion may remove either without the
-- other, at any later time. 0: set or removed, or stored by an older writer. 1: what was set once first. Others, of users
-- alone: what was set once last in this week since 1970, which is all in a week that a deletion in it can leave.
-- packages/shared/src/clickhouse/property-versions.ts has the versions of their registers.
ALTER TABLE entity_properties
  ADD COLUMN IF NOT EXISTS once_week UInt16,
  MODIFY ORDER BY (workspace_id, kind, id, property, once_week)
