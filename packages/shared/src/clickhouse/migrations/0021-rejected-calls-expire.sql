-- Calls that ingest-api rejected are kept for 30 days. The producer was told, and a call may name nobody whose deletion
-- would erase it. Rows that were accepted and cannot be stored are kept until somebody replays them.
ALTER TABLE dead_letters
  MODIFY TTL toDateTime(recorded_at) + INTERVAL 30 DAY DELETE WHERE kind = 'rejected'
