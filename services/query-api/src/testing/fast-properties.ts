import { fastColumn, fastSet, fastValues } from '@sluice/shared/clickhouse/fast-properties';
import type { QueryService } from './query-service.ts';

/** Declares properties of a workspace as fast, by column from the first one on; an empty name leaves a column free. */
export async function declareFast(query: QueryService, workspace: string, names: readonly string[]): Promise<void> {
  await query.insert('console_fast_properties', [{ workspace_id: workspace, names }]);
}

/**
 * Makes the columns of stored events what the writer stores while these properties are declared.
 *
 * @param events a condition on the events; default: all of the workspace
 */
export async function fillFast(
  query: QueryService,
  workspace: string,
  names: readonly string[],
  events = 'true',
): Promise<void> {
  const quoted = names.map((name) => `'${name.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`);
  const values = quoted.map((name, index) => `${fastColumn(index + 1)} = ${fastValues('properties', [name])}[1]`);
  const columns = quoted.map((_, index) => index + 1);
  const list = `(SELECT any(row_set) FROM console_fast_properties WHERE workspace_id = '${workspace}' AND names = [${quoted}])`;
  await query.clickHouse.command({
    query: `ALTER TABLE events UPDATE fast_set = ${fastSet(list, 'properties', fastValues('properties', quoted), columns)}, ${values.join(', ')}
      WHERE workspace_id = '${workspace}' AND (${events})`,
    clickhouse_settings: { mutations_sync: '2' },
  });
}
