import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { PERSON_SQL } from '@sluice/shared/rows/deleted-person';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { type ComparedTable, type Cut, checksumsOf, DELETIONS_LEFT_OUT, rowsOf } from './compared-tables.ts';

/** How long a statement may take, in milliseconds. It reads a table, or a partition of one. */
export const STATEMENT_MS_MAX = 6 * 3_600_000;

/** How many users or keys a statement names at most. */
const NAMED_MAX = 100;

/**
 * Reads in order where a table has to be folded, so that memory does not grow with it, and lets all queries of query-api go
 * first. ClickHouse never waits longer than this before a block, however many come.
 */
const SETTINGS = {
  max_threads: 2,
  max_block_size: '8192',
  optimize_aggregation_in_order: 1,
  priority: '4',
  low_priority_query_wait_time_ms: '20',
} as const;

const CREATE_DELETIONS = `
CREATE TEMPORARY TABLE ${DELETIONS_LEFT_OUT} (workspace_id String, user_id String, version UInt64) ENGINE = Memory`;

const LOAD_DELETIONS = `INSERT INTO ${DELETIONS_LEFT_OUT} FORMAT JSONEachRow`;

const PENDING = `
SELECT toString(workspace_id) AS workspace, user_id AS user, max(version) AS version
FROM pending_deletions GROUP BY workspace_id, user_id`;

const SIZES = `
SELECT table, partition_id AS partition, sum(rows) AS rows FROM system.parts
WHERE database = currentDatabase() AND active GROUP BY table, partition_id`;

const LAST_DELETIONS = `
SELECT toString(workspace_id) AS workspace, user_id AS user, max(version) AS version FROM user_deletions
WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
GROUP BY workspace_id, user_id`;

// The first condition is that of the text index.
const SAME_UUID = `
SELECT toString(workspace_id) AS workspace, toString(uuid) AS uuid, ${PERSON_SQL} AS user, group_id AS organization FROM events
WHERE substring(toString(uuid), 31) IN arrayMap(one -> substring(one, 31), {uuids:Array(String)})
  AND (toString(workspace_id), toString(uuid)) IN arrayZip({workspaces:Array(String)}, {uuids:Array(String)})`;

const READ_ROWS = 'SELECT sum(read_rows) AS rows FROM system.processes WHERE startsWith(query_id, {own:String})';

const END_OWN = 'KILL QUERY WHERE startsWith(query_id, {own:String}) ASYNC';

/** The rows of a bucket, with the sum of their hashes. */
export interface Checksum {
  readonly rows: number;
  readonly checksum: string;
}

export interface ComparedRow {
  readonly workspace: string;
  readonly user: string;
  readonly key: readonly (string | number)[];
  readonly content: string;
  readonly newest: number;
  readonly accepted: number;
  /** The last deletion of the user that is left out; 0 without one. */
  readonly deleted: number;
}

/** The last deletion of a user, in microseconds since 1970. */
export interface UserDeletion extends User {
  readonly version: number;
}

export interface User {
  readonly workspace: string;
  readonly user: string;
}

/** An event, with what it names. */
export interface NamedEvent extends User {
  readonly uuid: string;
  readonly organization: string;
}

/** How many rows a partition of a table has, without regard to what is left out. */
export interface TableSize {
  readonly table: string;
  readonly partition: string;
  readonly rows: number;
}

/** A table, or a partition of the table `events`, with into how many buckets its keys are divided. */
export interface Part {
  readonly table: ComparedTable;
  /** Empty where it is the whole table. */
  readonly partition: string;
  readonly buckets: number;
}

/** What all statements of a comparison leave out. */
export interface LeftOut {
  readonly cut: Cut;
  readonly deletions: readonly UserDeletion[];
}

/** One of two servers that are compared. Its methods throw ClickHouse's errors. */
export class ComparedServer {
  readonly name: string;
  readonly #client: ClickHouseClient;
  readonly #scanning: ClickHouseClient;
  readonly #queryIdPrefix: string;

  /**
   * @param scanning its requests may take {@link STATEMENT_MS_MAX}
   * @param run identifies the comparison
   */
  constructor(name: string, client: ClickHouseClient, scanning: ClickHouseClient, run: string) {
    this.name = name;
    this.#client = client;
    this.#scanning = scanning;
    this.#queryIdPrefix = `sluice-compare/${run}/${name}`;
  }

  async sizes(): Promise<TableSize[]> {
    return await this.#read<TableSize>(SIZES);
  }

  async checksums(part: Part, leftOut: LeftOut): Promise<ReadonlyMap<number, Checksum>> {
    const sql = checksumsOf(part.table);
    const found = await this.#compare<Checksum & { bucket: number }>('checksums', sql, part, leftOut);
    return new Map(found.map(({ bucket, rows, checksum }) => [bucket, { rows, checksum }]));
  }

  async rows(part: Part, leftOut: LeftOut, chosen: readonly number[]): Promise<ComparedRow[]> {
    return await this.#compare<ComparedRow>('rows', rowsOf(part.table), part, leftOut, { chosen });
  }

  /** Returns the deletions that are not erased yet. */
  async pendingDeletions(): Promise<UserDeletion[]> {
    return await this.#read<UserDeletion>(PENDING);
  }

  /** Returns the last deletions of those users who were ever deleted. */
  async lastDeletions(users: readonly User[]): Promise<UserDeletion[]> {
    return await this.#readNamed(users, (named) =>
      this.#read<UserDeletion>(LAST_DELETIONS, {
        workspaces: named.map(({ workspace }) => workspace),
        users: named.map(({ user }) => user),
      }),
    );
  }

  /** Returns the events of some uuids, also those of deleted users. */
  async eventsOf(keys: readonly { readonly workspace: string; readonly uuid: string }[]): Promise<NamedEvent[]> {
    return await this.#readNamed(keys, (named) =>
      this.#read<NamedEvent>(SAME_UUID, {
        workspaces: named.map(({ workspace }) => workspace),
        uuids: named.map(({ uuid }) => uuid),
      }),
    );
  }

  /** Returns how many rows the statements have read that run now. */
  async readRows(): Promise<number> {
    const [row] = await this.#read<{ rows: number }>(READ_ROWS, { own: `${this.#queryIdPrefix}/` });
    return row?.rows ?? 0;
  }

  /** Ends the statements that run now. Never throws. */
  async end(): Promise<void> {
    await this.#client
      .command({ query: END_OWN, query_params: { own: `${this.#queryIdPrefix}/` } })
      .catch(() => undefined);
  }

  async #readNamed<Named, Found>(all: readonly Named[], read: (named: readonly Named[]) => Promise<Found[]>) {
    const found: Found[] = [];
    for (let at = 0; at < all.length; at += NAMED_MAX) found.push(...(await read(all.slice(at, at + NAMED_MAX))));
    return found;
  }

  async #read<Row>(query: string, query_params: Readonly<Record<string, unknown>> = {}): Promise<Row[]> {
    const parameters = { query_params: { ...query_params }, clickhouse_settings: SETTINGS };
    const result = await this.#client.query({ query, ...parameters, format: 'JSONEachRow' });
    return await result.json<Row>();
  }

  /** Runs a statement of {@link checksumsOf} or {@link rowsOf}, in a session of its own that has the deletions. */
  async #compare<Row>(
    name: string,
    sql: string,
    { table, partition, buckets }: Part,
    { cut, deletions }: LeftOut,
    more: Readonly<Record<string, unknown>> = {},
  ): Promise<Row[]> {
    const parameters = { ...cut, partition, buckets, ...more };
    const statement = { name: `${name}-${table.name.replaceAll('_', '-')}`, sql };
    return await ClickHouseSession.use(this.#scanning, this.#queryIdPrefix, STATEMENT_MS_MAX, async (session) => {
      await session.run({ name: 'create-deletions', sql: CREATE_DELETIONS });
      if (deletions.length > 0) {
        await session.load({ name: 'load-deletions', sql: LOAD_DELETIONS }, [Buffer.from(linesOf(deletions))]);
      }
      return await session.read<Row>(statement, parameters, SETTINGS);
    });
  }
}

function linesOf(deletions: readonly UserDeletion[]): string {
  return deletions
    .map(({ workspace, user, version }) => JSON.stringify({ workspace_id: workspace, user_id: user, version }))
    .join('\n');
}
