-- As 0008 does for events.
ALTER TABLE user_deletions
  MODIFY SETTING
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    min_rows_to_fsync_after_merge = 1,
    min_free_disk_bytes_to_perform_insert = 67108864
