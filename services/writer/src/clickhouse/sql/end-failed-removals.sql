-- Ends removals that have failed; ClickHouse would retry them for ever. The next round of the erasure runs them again.
-- Only the writer's own are ended: every removal looks each user's version up with indexOf(arrayZip(…)), or each workspace's
-- time with transform(toString(workspace_id), …), and ClickHouse keeps that in the text of the mutation. One of a migration,
-- or of an operator, goes on: nobody would start it again.
KILL MUTATION
WHERE database = currentDatabase()
  AND table IN ('events', 'entities', 'entity_properties', 'user_sightings', 'dead_letters', 'pending_deletions')
  AND NOT is_done AND latest_fail_reason != ''
  AND startsWith(command, '(DELETE ')
  AND multiSearchAny(command, ['indexOf(arrayZip(', 'transform(toString(workspace_id), '])
SYNC
