/** A piece of SQL and the values of its parameters. Nothing that came from outside is ever part of `sql`. */
export interface Sql {
  readonly sql: string;
  readonly params: Readonly<Record<string, SqlValue>>;
}

export type SqlValue = string | number | readonly string[] | readonly number[];

/**
 * The tables, restricted to one workspace. Queries name tables in no other way, so that none can leave out the
 * condition on the workspace; the query runner binds the parameter. ClickHouse plans such a sub-select like the bare
 * table: it still uses the sorting key, the indexes and lazy reading.
 */
export const tables = {
  events: ofWorkspace('events'),
  // ClickHouse keeps the sizes of texts apart from the texts, and reads them alone.
  eventSizes: ofWorkspace('events', '*, properties.size + context.size + traits.size AS json_bytes'),
  entities: ofWorkspace('entities'),
  entityProperties: ofWorkspace('entity_properties'),
  userDeletions: ofWorkspace('user_deletions'),
  pendingDeletions: ofWorkspace('pending_deletions'),
  userSightings: ofWorkspace('user_sightings'),
  // The newest state of a dead letter counts.
  deadLetters: ofWorkspace('dead_letters FINAL'),
} as const;

/** The only table that is read for all workspaces at once, to learn which of them have pending deletions. */
export const PENDING_DELETIONS_OF_ALL_WORKSPACES = 'pending_deletions';

/**
 * The events of all workspaces, for the stream alone: its statements compare the workspace in each of their conditions.
 * `block` is the number of the insert that stored the row, `blocks_up_to` the highest one of the row's part: ClickHouse
 * leaves out whole parts by it. `shard` is the number of the server, 0 without a cluster.
 */
export const EVENTS_OF_ALL_WORKSPACES = `(
  SELECT
    *,
    _block_number AS block,
    toUInt64OrZero(splitByChar('_', _part)[3]) AS blocks_up_to,
    shardNum() AS shard
  FROM events
)`;

/**
 * The newest number that each server has given to an insert or a mutation. The name of a part has both: partition, lowest
 * block, highest block, level, mutation. ClickHouse answers from its list of parts, and reads no rows.
 */
export const NEWEST_BLOCKS = `(
  SELECT
    shardNum() AS shard,
    max(greatest(toUInt64OrZero(splitByChar('_', _part)[3]), toUInt64OrZero(splitByChar('_', _part)[5]))) AS newest
  FROM (SELECT _part, count() FROM events GROUP BY _part)
)`;

function ofWorkspace(table: string, columns = '*'): string {
  return `(SELECT ${columns} FROM ${table} WHERE workspace_id = {workspace:String})`;
}

/** Joins conditions by AND, with the keyword WHERE in front. Without conditions the SQL is empty. */
export function where(conditions: readonly Sql[]): Sql {
  return {
    sql: conditions.length === 0 ? '' : `WHERE ${conditions.map(({ sql }) => `(${sql})`).join('\n  AND ')}`,
    params: Object.assign({}, ...conditions.map(({ params }) => params)),
  };
}

/** Collects the values that a piece of SQL binds. Equal values share a parameter. */
export class BoundParameters {
  readonly params: Record<string, string | readonly string[]> = {};
  readonly #prefix: string;
  readonly #names = new Map<string, string>();

  /** @param prefix begins the names of all parameters; short, since a query can have hundreds */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Binds a text and returns its placeholder. */
  text(value: string): string {
    return `{${this.#bind(value)}:String}`;
  }

  /** Binds a list of texts and returns its placeholder. */
  texts(values: readonly string[]): string {
    return `{${this.#bind(values)}:Array(String)}`;
  }

  #bind(value: string | readonly string[]): string {
    const key = JSON.stringify(value);
    const name = this.#names.get(key) ?? `${this.#prefix}_${this.#names.size}`;
    this.#names.set(key, name);
    this.params[name] = value;
    return name;
  }
}
