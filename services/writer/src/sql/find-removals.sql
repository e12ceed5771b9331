-- Counts mutations that have not ended, such as one that took longer than the writer waited, or than it lived.
SELECT count() AS running
FROM system.mutations
WHERE database = currentDatabase()
  AND table IN ('events', 'entities', 'entity_properties', 'user_sightings', 'dead_letters', 'pending_deletions')
  AND NOT is_done AND NOT is_killed
