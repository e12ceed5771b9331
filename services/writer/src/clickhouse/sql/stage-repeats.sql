CREATE TEMPORARY TABLE repeats (place UInt64) ENGINE = Memory
