import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Migration } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import { readNumber } from '@sluice/shared/clickhouse/read-number';
import { PERSON_SQL } from '@sluice/shared/rows/deleted-person';
import { type CopyLog, IS_NEWEST_RUN } from './copy-log.ts';
import type { RemoteTables } from './remote-table.ts';
import { type Share, shareCondition, shareParameters } from './share.ts';

/** What a server says of itself, or counts for itself, and what query-api stores, which is on one server. */
export const NOT_COPIED: readonly string[] = [
  ...['schema_migrations', 'backups', 'copies', 'server_comparisons', 'audits', 'audited_hours', 'audit_differences'],
  ...['database_identity', 'storing_progress', 'stream_order'],
  ...['writer_groups', 'writer_epochs', 'writer_positions', 'writer_halts', 'ended_batches', 'writer_replicas'],
  ...['webhooks', 'webhook_states', 'webhook_leases', 'webhook_positions', 'webhook_deliveries', 'console_documents'],
  'console_property_reads',
];

/**
 * Copied first. An event that one of them hides is not copied, so they must not be newer than the positions by more than a
 * moment: what is sent again in between is read from Kafka, and counts as a repeat of that event only while it is there.
 * Pending ones come first, so that the other table has all of them.
 */
export const DELETIONS = ['pending_deletions', 'user_deletions'] as const;

/** The tables that are copied after the events. A copied event whose user is missing would never get it. */
export function otherTables(migrations: readonly Migration[]): string[] {
  const first: readonly string[] = ['events', ...DELETIONS, ...NOT_COPIED];
  return migrations.map(createdTable).filter((table) => table !== undefined && !first.includes(table)) as string[];
}

/** How often ClickHouse is asked how far a statement is, in milliseconds. */
const POLL_MS = 500;

/**
 * What bounds the memory of a copy, whatever the size of a table: one stream in the order of the key, small blocks on the way,
 * and parts of some hundred thousand rows. What is read is not merged on its way, and no limit of time ends it.
 */
const COPY_SETTINGS = {
  max_execution_time: 0,
  max_threads: 1,
  max_insert_threads: 1,
  max_block_size: 2_048,
  min_insert_block_size_rows: 262_144,
  min_insert_block_size_bytes: 64 * 1_024 * 1_024,
  optimize_read_in_order: 1,
  optimize_on_insert: 0,
  wait_end_of_query: 1,
} as const;

const COLUMNS = `
SELECT name FROM system.columns
WHERE database = currentDatabase() AND table = {table:String} AND default_kind NOT IN ('MATERIALIZED', 'ALIAS')
ORDER BY position`;

const SORTING_KEY = `
SELECT sorting_key AS key FROM system.tables WHERE database = currentDatabase() AND name = {table:String}`;

const PROGRESS = `
SELECT written_rows AS rows, read_bytes AS bytes FROM system.processes WHERE query_id = {id:String}`;

const DROP_PARTITION = 'ALTER TABLE {table:Identifier} DROP PARTITION ID {partition:String}';

const DROP_ALL = 'ALTER TABLE {table:Identifier} DROP PARTITION ALL';

/** A partition of the table is dropped, however large it is. */
const ANY_SIZE = { max_partition_size_to_drop: '0', max_table_size_to_drop: '0' } as const;

export interface TableCopyOptions {
  /** Logs in at the server that is filled, with the account for migrations. Statements may take days. */
  readonly client: ClickHouseClient;
  /** Logs in there with the account of its writers, which may remove rows. */
  readonly writer: ClickHouseClient;
  readonly remote: RemoteTables;
  readonly log: CopyLog;
  /** What is copied of the tables whose rows are divided; undefined: all of it. */
  readonly share: Share | undefined;
  /** The bytes a second that are read from the source; 0: any number. */
  readonly bandwidth: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: { readonly rows: number; readonly bytes: number }) => void;
}

/**
 * Copies tables from another server. ClickHouse reads the rows by itself and stores them as new ones, so that they get block
 * numbers of this server. What was there before is dropped, so each method may be repeated.
 */
export class TableCopy {
  readonly #options: TableCopyOptions;

  constructor(options: TableCopyOptions) {
    this.#options = options;
  }

  /** Copies a table, or the share of it. @throws ClickHouse's errors */
  async copyTable(table: string): Promise<void> {
    const { remote, share } = this.#options;
    const { columns, key } = await this.#describe(table);
    await this.dropAll(table);
    const sql = `INSERT INTO ${table} (${columns})
      SELECT ${columns} FROM ${remote(table)} WHERE ${shareCondition(table, share)} AND ${IS_NEWEST_RUN} ORDER BY ${key}`;
    await this.#insert(table, sql);
  }

  /**
   * Copies a partition of the table `events`, or the share of it, without what the pending deletions of this server hide. Of
   * equal keys only the newest is read (FINAL), which is the visible one: after a merge here, another one might be left.
   *
   * @returns the number of rows
   * @throws ClickHouse's errors
   */
  async copyEvents(partition: string): Promise<number> {
    const { remote, share } = this.#options;
    const { columns, key } = await this.#describe('events');
    await this.#drop(DROP_PARTITION, { table: 'events', partition });
    const sql = `INSERT INTO events (${columns})
      SELECT ${columns}
      FROM (
        SELECT ${columns}
        FROM ${remote('events')} FINAL
        WHERE _partition_id = {partition:String} AND ${shareCondition('events', share)}
        ORDER BY ${key}
      ) AS copied
      LEFT JOIN (
        SELECT workspace_id AS workspace, user_id AS person, max(version) AS deleted
        FROM pending_deletions GROUP BY workspace, person
      ) AS pending ON workspace = workspace_id AND person = ${PERSON_SQL}
      WHERE toUnixTimestamp64Micro(received_at) > deleted AND ${IS_NEWEST_RUN}`;
    await this.#insert('events', sql, { partition });
    return await this.countEvents(partition);
  }

  /** Returns how many events of a partition are stored. @throws ClickHouse's errors */
  async countEvents(partition: string): Promise<number> {
    const sql = 'SELECT count() AS number FROM events WHERE _partition_id = {partition:String}';
    return await readNumber(this.#options.client, sql, { partition });
  }

  /** Drops all rows of a table. @throws ClickHouse's errors */
  async dropAll(table: string): Promise<void> {
    await this.#drop(DROP_ALL, { table });
  }

  async #drop(query: string, query_params: Record<string, unknown>): Promise<void> {
    const { writer, log } = this.#options;
    await log.requireNewest();
    await writer.command({ query, query_params, clickhouse_settings: ANY_SIZE });
  }

  async #describe(table: string): Promise<{ readonly columns: string; readonly key: string }> {
    const { client } = this.#options;
    const query_params = { table };
    const columns = await client.query({ query: COLUMNS, query_params, format: 'JSONEachRow' });
    const key = await client.query({ query: SORTING_KEY, query_params, format: 'JSONEachRow' });
    const names = (await columns.json<{ name: string }>()).map(({ name }) => name);
    return { columns: names.join(', '), key: (await key.json<{ key: string }>())[0]?.key ?? '' };
  }

  /** Runs an insert to its end, and tells how far it is. @throws ClickHouse's errors, also when the signal aborts */
  async #insert(name: string, query: string, parameters: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const { client, log, share, signal, bandwidth } = this.#options;
    signal.throwIfAborted();
    const query_id = log.queryId(`copy-${name.replaceAll('_', '-')}`);
    const ended = new AbortController();
    const following = this.#follow(query_id, ended.signal);
    const settings = { ...COPY_SETTINGS, ...(bandwidth > 0 && { max_network_bandwidth: bandwidth }) };
    try {
      await client.command({
        ...{ query, query_id, query_params: { run: log.run, ...shareParameters(share), ...parameters } },
        clickhouse_settings: settings as never,
      });
    } finally {
      ended.abort();
      await following;
    }
    signal.throwIfAborted();
  }

  async #follow(id: string, ended: AbortSignal): Promise<void> {
    const { client, signal, onProgress } = this.#options;
    for (;;) {
      await sleep(POLL_MS, AbortSignal.any([ended, signal]));
      if (ended.aborted) return;
      if (signal.aborted) {
        const query = 'KILL QUERY WHERE query_id = {id:String} ASYNC';
        await client.command({ query, query_params: { id } }).catch(() => undefined);
        return;
      }
      const result = await client
        .query({ query: PROGRESS, query_params: { id }, format: 'JSONEachRow' })
        .catch(() => undefined);
      const [progress] = (await result?.json<{ rows: number; bytes: number }>().catch(() => [])) ?? [];
      if (progress) onProgress(progress);
    }
  }
}
