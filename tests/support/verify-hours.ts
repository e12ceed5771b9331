import { readClickHouse } from './clickhouse.ts';

/**
 * Compares the projection by hour with the events, in one state of the table. ClickHouse answers the first count from the
 * projection; the second one needs a column that it does not have.
 */
const WRONG_HOURS = `
  SELECT concat(workspace_id, ' ', type, ' ', event, ' ', toString(hour)), sum(counted) AS surplus
  FROM (
    SELECT workspace_id, type, event, toStartOfHour(timestamp) AS hour, toInt64(count()) AS counted
    FROM events
    GROUP BY workspace_id, type, event, hour
    UNION ALL
    SELECT workspace_id, type, event, toStartOfHour(timestamp) AS hour, -toInt64(countIf(length(properties) > 0)) AS counted
    FROM events
    GROUP BY workspace_id, type, event, hour
  )
  GROUP BY workspace_id, type, event, hour
  HAVING surplus != 0
  FORMAT TSV
  SETTINGS enable_shared_storage_snapshot_in_query = 1`;

/** Returns the hours whose count in the projection is not the number of their events. */
export async function wrongHours(database: string, clickhouseUrl: string): Promise<string[]> {
  const text = await readClickHouse(clickhouseUrl, WRONG_HOURS, { database });
  return text.split('\n').flatMap((line) => (line === '' ? [] : [`the projection of hours differs: ${line}`]));
}
