-- Older parts get it in the background: services start, and the writer stores, meanwhile. Until then, lists read the rows of these
-- parts, and erasures wait.
ALTER TABLE dead_letters MATERIALIZE PROJECTION by_time SETTINGS mutations_sync = 0
