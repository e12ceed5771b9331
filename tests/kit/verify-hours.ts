import { readClickHouse } from './clickhouse.ts';

const UNITS = { hours: 3_600_000, days: 86_400_000 };

/**
 * Compares a projection with the events, in one state of the table. ClickHouse has to answer the first half from the
 * projection; the second half needs a column that it does not have.
 */
const wrongCounts = (unitMs: number) => `
  SELECT concat(workspace_id, ' ', type, ' ', event, ' ', toString(start)), groupArray((source, counted, first, last))
  FROM (
    SELECT 'projection' AS source, workspace_id, type, event,
      toStartOfInterval(timestamp, toIntervalMillisecond(${unitMs})) AS start,
      count() AS counted, min(timestamp) AS first, max(timestamp) AS last
    FROM events
    GROUP BY workspace_id, type, event, start
    UNION ALL
    SELECT 'events' AS source, workspace_id, type, event,
      toStartOfInterval(timestamp, toIntervalMillisecond(${unitMs})) AS start,
      countIf(length(properties) > 0) AS counted, min(timestamp) AS first, max(timestamp) AS last
    FROM events
    GROUP BY workspace_id, type, event, start
  )
  GROUP BY workspace_id, type, event, start
  HAVING count() != 2 OR uniqExact(counted, first, last) != 1
  FORMAT TSV
  SETTINGS enable_shared_storage_snapshot_in_query = 1, force_optimize_projection = 1`;

/** Returns the hours and days whose count, first or last time in the projections is not that of their events. */
export async function wrongHours(database: string, clickhouseUrl: string): Promise<string[]> {
  const found: string[] = [];
  for (const [unit, ms] of Object.entries(UNITS)) {
    const text = await readClickHouse(clickhouseUrl, wrongCounts(ms), { database });
    const lines = text.split('\n').filter((line) => line !== '');
    found.push(...lines.map((line) => `the projection of ${unit} differs: ${line}`));
  }
  return found;
}
