-- Older parts get them in the background: services start, and the writer stores, meanwhile. Until then, lists by time read
-- all users, and erasures wait.
ALTER TABLE entities
  MATERIALIZE PROJECTION by_first_seen,
  MATERIALIZE PROJECTION by_last_seen
SETTINGS mutations_sync = 0
