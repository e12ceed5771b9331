-- Which rows are being removed by mutations.

-- name: find-removals
-- Finds mutations that have not ended, such as one that took longer than the writer waited, or than it lived, or one of a
-- migration. ClickHouse runs the mutations of a table one after the other.
SELECT table, mutation_id AS mutation, latest_fail_reason AS failure
FROM system.mutations
WHERE database = currentDatabase()
  AND table IN ('events', 'entities', 'entity_properties', 'user_sightings', 'identity_links', 'dead_letters', 'pending_deletions')
  AND NOT is_done AND NOT is_killed
ORDER BY failure = ''

-- name: end-failed-removals
-- Ends removals that have failed; ClickHouse would retry them for ever. The next round of the erasure runs them again.
-- Only the writer's own are ended: every removal looks each user's version up with indexOf(arrayZip(…)), or each workspace's
-- time with transform(toString(workspace_id), …), or names the reason COLD_VOLUME_AWAY, and ClickHouse keeps that in the text of the
-- mutation; so does what fills the columns of fast properties. One of a migration, or of an operator, goes on: nobody would start it again.
KILL MUTATION
WHERE database = currentDatabase()
  AND table IN ('events', 'entities', 'entity_properties', 'user_sightings', 'identity_links', 'dead_letters', 'pending_deletions')
  AND NOT is_done AND latest_fail_reason != ''
  AND (startsWith(command, '(DELETE ') OR startsWith(command, '(UPDATE fast_set = '))
  AND multiSearchAny(command, ['indexOf(arrayZip(', 'transform(toString(workspace_id), ', 'COLD_VOLUME_AWAY'])
SYNC
