import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

const HEAD =
  '-- The tables after all migrations. npm run schema -- --write writes this file, and a test compares it.\n';

/** Without what the migrations do not name, such as the tables in which ClickHouse keeps a view. */
const READ = `
SELECT formatQuery(replaceAll(create_table_query, concat(currentDatabase(), '.'), '')) AS statement
FROM system.tables
WHERE database = currentDatabase() AND NOT startsWith(name, '.')
ORDER BY name`;

/** Returns the statements that would create the tables, views and dictionaries of a database, by their names. */
export async function readSchema(client: ClickHouseClient): Promise<string> {
  const result = await client.query({ query: READ, format: 'JSONEachRow' });
  const rows = await result.json<{ statement: string }>();
  return [HEAD, ...rows.map(({ statement }) => `${statement};\n`)].join('\n');
}
