-- Older parts get them in the background: services start, and the writer stores, meanwhile. Until a part has them, its rows are
-- counted one by one, it is merged with no newer part, and erasures wait.
ALTER TABLE events MATERIALIZE PROJECTION by_hour, MATERIALIZE PROJECTION by_day SETTINGS mutations_sync = 0
