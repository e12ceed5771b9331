-- A merge that finds a repeated event writes the projections of 0015 anew, from the rows that stay. ClickHouse allows a
-- projection on a ReplacingMergeTree only with this.
ALTER TABLE events MODIFY SETTING deduplicate_merge_projection_mode = 'rebuild'
