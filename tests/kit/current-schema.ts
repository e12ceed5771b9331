import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { ADMINISTRATOR } from '@sluice/shared/clickhouse/testing/test-accounts';

const HEAD =
  '-- The tables after all migrations. npm run schema -- --write writes this file, and a test compares it.\n';

/** Without what the migrations do not name, such as the tables in which ClickHouse keeps a view. */
const READ = `
SELECT formatQuery(replaceAll(create_table_query, concat(currentDatabase(), '.'), '')) AS statement
FROM system.tables
WHERE database = currentDatabase() AND NOT startsWith(name, '.')
ORDER BY name`;

/**
 * Applies all migrations to an empty database, and drops it. Databases of tests have their tables from the document that this
 * is written to, so they tell nothing of the migrations.
 *
 * @returns the statements that would create the tables, views and dictionaries, by their names
 */
export async function readSchema(url: string): Promise<string> {
  const database = `test_schema_${randomUUID().replaceAll('-', '')}`;
  const config = { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: database, ...ADMINISTRATOR };
  await migrate(config, createLogger('schema', 'error'));
  await using client = createClickHouse(config, { application: 'schema', requestTimeoutMs: 60_000, connectionsMax: 1 });
  const result = await client.query({ query: READ, format: 'JSONEachRow' });
  const rows = await result.json<{ statement: string }>();
  await client.command({ query: `DROP DATABASE ${database} SYNC` });
  return [HEAD, ...rows.map(({ statement }) => `${statement};\n`)].join('\n');
}
