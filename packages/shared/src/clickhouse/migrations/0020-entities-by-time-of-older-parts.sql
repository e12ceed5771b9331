-- Older parts get them in the background. Until then, lists by time read all users. Erasures wait meanwhile.
ALTER TABLE entities
  MATERIALIZE PROJECTION by_first_seen,
  MATERIALIZE PROJECTION by_last_seen
