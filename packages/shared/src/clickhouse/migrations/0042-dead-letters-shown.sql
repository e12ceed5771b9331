-- What a list of dead letters shows of a row, so that it need not read the row: whether it is of one workspace, that is, a row as
-- ingest-api writes it, which begins with its workspace, and no message of several; the client that sent a rejected call; and the
-- length. The setting lets the table have a projection.
ALTER TABLE dead_letters
  ADD COLUMN IF NOT EXISTS is_of_one_workspace Bool MATERIALIZED
    format = '1' AND position(row, '\n') = 0 AND startsWith(row, concat('{"workspace_id":"', workspace_id, '",')),
  ADD COLUMN IF NOT EXISTS client String MATERIALIZED if(kind = 'rejected', JSONExtractString(row, 'client'), ''),
  ADD COLUMN IF NOT EXISTS row_bytes UInt64 MATERIALIZED length(row),
  MODIFY SETTING deduplicate_merge_projection_mode = 'rebuild'
