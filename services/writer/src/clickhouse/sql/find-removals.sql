-- Finds mutations that have not ended, such as one that took longer than the writer waited, or than it lived, or one of a
-- migration. ClickHouse runs the mutations of a table one after the other.
SELECT table, mutation_id AS mutation, latest_fail_reason AS failure
FROM system.mutations
WHERE database = currentDatabase()
  AND table IN ('events', 'entities', 'entity_properties', 'user_sightings', 'dead_letters', 'pending_deletions')
  AND NOT is_done AND NOT is_killed
ORDER BY failure = ''
