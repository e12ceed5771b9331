-- Older parts get it in the background: services start, and the writer stores, meanwhile. Until a part has it, its rows are
-- counted one by one, it is merged with no newer part, and erasures wait.
ALTER TABLE events MATERIALIZE PROJECTION by_hour SETTINGS mutations_sync = 0
