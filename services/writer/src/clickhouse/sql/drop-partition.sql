-- Removes all events of a partition at once, and rewrites nothing.
ALTER TABLE events DROP PARTITION ID {partition:String}
