SELECT count() AS rows FROM staged_events WHERE stamped = 1
