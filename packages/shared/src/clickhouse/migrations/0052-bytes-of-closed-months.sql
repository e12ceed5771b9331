-- docs/design/decisions/0115-bytes-of-closed-months.md has the figures.
--
-- A block of 8 to 16 KiB in place of 2 to 4 compresses documents to three quarters, and to read a single row of it costs no more: its
-- granule of 128 rows has some 50 KiB of properties. All other columns keep small blocks, of which a row needs one each. New parts have
-- larger blocks, older ones when they are merged.
--
-- A merge, or an erasure, of events that were all received more than 30 days ago writes ZSTD in place of LZ4, the `Default`. That is the
-- one that makes a month without new events one part, after 35 days (0001-events.sql): it would be written anyway, and is not written
-- again. While a month gets events, its merges write LZ4.
ALTER TABLE events
  MODIFY COLUMN properties String DEFAULT '{}' SETTINGS (min_compress_block_size = 8192, max_compress_block_size = 16384),
  MODIFY COLUMN context String DEFAULT '{}' SETTINGS (min_compress_block_size = 8192, max_compress_block_size = 16384),
  MODIFY COLUMN timestamp CODEC(Delta, Default),
  MODIFY COLUMN received_at CODEC(Delta, Default),
  MODIFY TTL toDateTime(received_at) + toIntervalDay(30) RECOMPRESS CODEC(ZSTD(1))
SETTINGS materialize_ttl_after_modify = 0
