import type { Sql } from '../clickhouse/sql.ts';

/** Which entities a query looks at: these, or all whose identifiers are after `after` and at most `until`. */
export type EntityScope =
  | { readonly ids: readonly string[] }
  | { readonly after: string; readonly until?: string | undefined };

/** Returns the condition that the identifier in `column` is in a scope. Equal scopes share their parameters. */
export function inScope(scope: EntityScope, column: 'id' | 'user_id'): Sql {
  if ('ids' in scope) return { sql: `${column} IN {ids:Array(String)}`, params: { ids: scope.ids } };
  const { after, until } = scope;
  if (until === undefined) return { sql: `${column} > {after:String}`, params: { after } };
  return { sql: `${column} > {after:String} AND ${column} <= {until:String}`, params: { after, until } };
}
