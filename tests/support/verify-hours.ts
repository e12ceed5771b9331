import { readClickHouse } from './clickhouse.ts';

/**
 * Compares the projection by hour with the events, in one state of the table. ClickHouse has to answer the first half from
 * the projection; the second half needs a column that it does not have.
 */
const WRONG_HOURS = `
  SELECT concat(workspace_id, ' ', type, ' ', event, ' ', toString(hour)), groupArray((source, counted, first, last))
  FROM (
    SELECT 'projection' AS source, workspace_id, type, event,
      toStartOfInterval(timestamp, toIntervalMillisecond(3600000)) AS hour, count() AS counted, min(timestamp) AS first, max(timestamp) AS last
    FROM events
    GROUP BY workspace_id, type, event, hour
    UNION ALL
    SELECT 'events' AS source, workspace_id, type, event,
      toStartOfInterval(timestamp, toIntervalMillisecond(3600000)) AS hour, countIf(length(properties) > 0) AS counted, min(timestamp) AS first, max(timestamp) AS last
    FROM events
    GROUP BY workspace_id, type, event, hour
  )
  GROUP BY workspace_id, type, event, hour
  HAVING count() != 2 OR uniqExact(counted, first, last) != 1
  FORMAT TSV
  SETTINGS enable_shared_storage_snapshot_in_query = 1, force_optimize_projection = 1`;

/** Returns the hours whose count, first or last time in the projection is not that of their events. */
export async function wrongHours(database: string, clickhouseUrl: string): Promise<string[]> {
  const text = await readClickHouse(clickhouseUrl, WRONG_HOURS, { database });
  return text.split('\n').flatMap((line) => (line === '' ? [] : [`the projection of hours differs: ${line}`]));
}
