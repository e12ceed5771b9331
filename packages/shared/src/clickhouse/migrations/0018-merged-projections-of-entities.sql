-- A merge writes the projections of 0019 anew, from the rows that it merged.
ALTER TABLE entities MODIFY SETTING deduplicate_merge_projection_mode = 'rebuild'
