-- Whom the row of a dead letter is about, and when it was received, so that it is erased with its user: read as JSON,
-- or from the text of a row that is none. Empty or 0 where the row does not say. A message that could not be read has
-- any number of rows, and belongs to nobody.
ALTER TABLE dead_letters
  ADD COLUMN IF NOT EXISTS workspace_id String MATERIALIZED if(
    isValidJSON(row),
    JSONExtractString(row, 'workspace_id'),
    JSONExtractString(concat('[', extract(row, '"workspace_id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1)
  ),
  ADD COLUMN IF NOT EXISTS user_id String MATERIALIZED multiIf(
    format != '1' OR position(trimRight(row), '\n') > 0,
    '',
    kind = 'events' AND isValidJSON(row),
    JSONExtractString(row, 'user_id'),
    kind = 'events',
    JSONExtractString(concat('[', extract(row, '"user_id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1),
    kind = 'changes' AND isValidJSON(row),
    if(JSONExtractString(row, 'kind') = 'user', JSONExtractString(row, 'id'), ''),
    kind = 'changes' AND position(row, '"kind":"user"') > 0,
    JSONExtractString(concat('[', extract(row, '"id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1),
    ''
  ),
  ADD COLUMN IF NOT EXISTS version UInt64 MATERIALIZED if(
    isValidJSON(row),
    JSONExtractUInt(row, if(kind = 'events', 'received_at', 'version')),
    toUInt64OrZero(extract(row, '"(?:received_at|version)":(\\d+)'))
  )
