SELECT countIf(stamped = 1) AS stamped, count() AS rows FROM staged_events
