-- Workspaces that have events by now are read as before. Whatever anybody sets is newer. ClickHouse answers from the counts of the
-- projection `by_day`.
INSERT INTO console_identity_settings (workspace_id, identity, set_at)
SELECT workspace_id, 'raw', toDateTime64(0, 6, 'UTC') FROM events GROUP BY workspace_id
