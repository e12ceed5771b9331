-- A dead letter that names no user names the anonymous visitor of its row, as deletions do: the anonymous id behind the UTF-8 of
-- U+FFFF (deleted-person.ts). So a deletion of the visitor erases it. Dead letters from before name nobody in this case.
ALTER TABLE dead_letters
  MODIFY COLUMN user_id String MATERIALIZED multiIf(
    format != '1' OR position(trimRight(row), '\n') > 0,
    '',
    kind IN ('events', 'rejected') AND isValidJSON(row),
    multiIf(
      JSONExtractString(row, 'user_id') != '', JSONExtractString(row, 'user_id'),
      JSONExtractString(row, 'anonymous_id') != '', concat('\xEF\xBF\xBF', JSONExtractString(row, 'anonymous_id')),
      ''
    ),
    kind IN ('events', 'rejected') AND position(row, '"user_id":"') > 0,
    JSONExtractString(concat('[', extract(row, '"user_id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1),
    kind IN ('events', 'rejected') AND position(row, '"anonymous_id":"') > 0,
    concat(
      '\xEF\xBF\xBF',
      JSONExtractString(concat('[', extract(row, '"anonymous_id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1)
    ),
    kind = 'changes' AND isValidJSON(row),
    if(JSONExtractString(row, 'kind') = 'user', JSONExtractString(row, 'id'), ''),
    kind = 'changes' AND position(row, '"kind":"user"') > 0,
    JSONExtractString(concat('[', extract(row, '"id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1),
    ''
  )
