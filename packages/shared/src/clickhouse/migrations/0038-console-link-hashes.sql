-- The hashes of the keys of links. A key says nothing of its workspace, so the order of the table does not find its link; what
-- the check of a key reads must not grow with the links of all workspaces. Rows that are there already get it as they are merged.
ALTER TABLE console_documents ADD INDEX IF NOT EXISTS link_hash JSONExtractString(content, 'hash')
  TYPE bloom_filter(0.001) GRANULARITY 1
