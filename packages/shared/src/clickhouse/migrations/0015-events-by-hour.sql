-- How many events there are by type, name and hour, and by day. ClickHouse writes both with each part, by insert, merge and
-- erasure, from the rows of that part: they cannot differ from them (docs/decisions/0024-counts-by-hour.md). toStartOfHour
-- would return another hour for times before 1970 and from 2106 on.
ALTER TABLE events
  ADD PROJECTION IF NOT EXISTS by_hour (
    SELECT workspace_id, type, event, toStartOfInterval(timestamp, toIntervalMillisecond(3600000)),
      count(), min(timestamp), max(timestamp)
    GROUP BY workspace_id, type, event, toStartOfInterval(timestamp, toIntervalMillisecond(3600000))
  ),
  ADD PROJECTION IF NOT EXISTS by_day (
    SELECT workspace_id, type, event, toStartOfInterval(timestamp, toIntervalMillisecond(86400000)),
      count(), min(timestamp), max(timestamp)
    GROUP BY workspace_id, type, event, toStartOfInterval(timestamp, toIntervalMillisecond(86400000))
  )
