-- A call that ingest-api rejected is a dead letter of the kind `rejected`. Its row names the user and the time of receipt
-- as the row of an event does, so that a deletion of the user erases it too.
ALTER TABLE dead_letters
  MODIFY COLUMN user_id String MATERIALIZED multiIf(
    format != '1' OR position(trimRight(row), '\n') > 0,
    '',
    kind IN ('events', 'rejected') AND isValidJSON(row),
    JSONExtractString(row, 'user_id'),
    kind IN ('events', 'rejected'),
    JSONExtractString(concat('[', extract(row, '"user_id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1),
    kind = 'changes' AND isValidJSON(row),
    if(JSONExtractString(row, 'kind') = 'user', JSONExtractString(row, 'id'), ''),
    kind = 'changes' AND position(row, '"kind":"user"') > 0,
    JSONExtractString(concat('[', extract(row, '"id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1),
    ''
  ),
  MODIFY COLUMN version UInt64 MATERIALIZED if(
    isValidJSON(row),
    JSONExtractUInt(row, if(kind IN ('events', 'rejected'), 'received_at', 'version')),
    toUInt64OrZero(extract(row, '"(?:received_at|version)":(\\d+)'))
  )
