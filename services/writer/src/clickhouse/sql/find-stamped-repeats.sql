-- Finds the stored events that stamped ones repeat. Their key differs, because they have another timestamp, so they are
-- recognised by their uuid, around the times of stamped events of the batch: `rangesToLookUp` says which. Only those that are timed by their
-- receipt count, as each stamped one is: protocol/repeats.ts says why.
INSERT INTO originals
SELECT
  workspace_id,
  timestamp,
  uuid,
  if(user_id = '', concat('\xEF\xBF\xBF', anonymous_id), user_id) AS person,
  received_at
FROM events
WHERE timestamp BETWEEN fromUnixTimestamp64Milli({first_stamped:Int64}, 'UTC') - INTERVAL 10 MINUTE
    AND fromUnixTimestamp64Milli({last_stamped:Int64}, 'UTC') + INTERVAL 10 MINUTE
  AND (workspace_id, uuid) IN (SELECT workspace_id, uuid FROM staged_events WHERE stamped)
  AND toUnixTimestamp64Milli(timestamp) = intDiv(toUnixTimestamp64Micro(received_at), 1000)
