/** A piece of SQL and the values of the parameters in it. Nothing that came from outside is ever part of `sql`. */
export interface Sql {
  readonly sql: string;
  readonly params: Readonly<Record<string, SqlValue>>;
}

export type SqlValue = string | number | readonly string[];

/**
 * The tables as one workspace sees them. Queries name no table in any other way, so none can leave the workspace's
 * condition out; the store binds the parameter. ClickHouse plans such a sub-select like the bare table: sorting key,
 * indexes and lazy reading stay in use.
 */
export const tables = {
  events: ofWorkspace('events'),
  entities: ofWorkspace('entities'),
  entityProperties: ofWorkspace('entity_properties'),
  userDeletions: ofWorkspace('user_deletions'),
  userSightings: ofWorkspace('user_sightings'),
} as const;

function ofWorkspace(table: string): string {
  return `(SELECT * FROM ${table} WHERE workspace_id = {workspace:String})`;
}

/** The conditions joined by AND, with the keyword in front; nothing when there are none. */
export function where(conditions: readonly Sql[]): Sql {
  return {
    sql: conditions.length === 0 ? '' : `WHERE ${conditions.map(({ sql }) => `(${sql})`).join('\n  AND ')}`,
    params: Object.assign({}, ...conditions.map(({ params }) => params)),
  };
}
