-- An insert is answered when its bytes are on the disk: the writer commits its offsets then, and Kafka does not send
-- the rows again after a power loss. Of merges, too, so that a part never replaces others before it is on the disk.
-- No insert begins with less free space than twice what a batch may come to, so that none meets the end of the disk.
ALTER TABLE events
  MODIFY SETTING
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    min_rows_to_fsync_after_merge = 1,
    min_free_disk_bytes_to_perform_insert = 67108864
