-- Older parts get it in the background. Until then their rows are counted one by one. Erasures wait meanwhile.
ALTER TABLE events MATERIALIZE PROJECTION by_hour
