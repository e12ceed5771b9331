-- Counts the stored events with the uuid of a stamped event, around its time. There is hardly ever one, and this takes a
-- quarter of the time of find-repeats.
SELECT count() AS stored
FROM events
WHERE timestamp BETWEEN fromUnixTimestamp64Milli({first_stamped:Int64}, 'UTC') - INTERVAL 10 MINUTE
    AND fromUnixTimestamp64Milli({last_stamped:Int64}, 'UTC') + INTERVAL 10 MINUTE
  AND (workspace_id, uuid) IN (SELECT workspace_id, uuid FROM staged_events WHERE stamped)
