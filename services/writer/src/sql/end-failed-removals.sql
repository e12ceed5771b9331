-- Ends mutations that have failed; ClickHouse would retry them for ever. The next round of the erasure runs them again.
KILL MUTATION
WHERE database = currentDatabase()
  AND table IN ('events', 'entities', 'entity_properties', 'user_sightings', 'dead_letters', 'pending_deletions')
  AND NOT is_done AND latest_fail_reason != ''
SYNC
