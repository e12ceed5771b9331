-- Before there is a TTL (0052): no part is rewritten for it alone. Where older parts learn when theirs is (0053), nothing but that time
-- is written.
ALTER TABLE events MODIFY SETTING max_number_of_merges_with_ttl_in_pool = 0, materialize_ttl_recalculate_only = 1
