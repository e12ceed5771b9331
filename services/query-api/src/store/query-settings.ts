import { PINNED_SETTINGS, SHARED_SETTINGS } from '@sluice/shared/clickhouse/settings';
import { isShared } from '@sluice/shared/config';
import type { QueryConfig } from '../config.ts';
import type { QueryPool } from '../metrics.ts';

/** Settings by their names, as ClickHouse's HTTP interface takes them. */
export type QuerySettings = Readonly<Record<string, string>>;

/** Returns the settings of every query: it cannot write, and it stays within its budget of memory and reading. */
export function querySettings(config: QueryConfig): QuerySettings {
  return {
    ...PINNED_SETTINGS,
    // Of the settings of shared rows, that of reads.
    ...(isShared(config) && { select_sequential_consistency: SHARED_SETTINGS.select_sequential_consistency }),
    readonly: '1',
    timeout_before_checking_execution_speed: '0',
    ...budgetSettings(config),
    read_overflow_mode: 'throw',
    // Groups follow the sorting keys, so that a page of groups reads no more than its rows.
    optimize_aggregation_in_order: '1',
    // Sub-selects of one query see the same rows, as a total needs.
    enable_shared_storage_snapshot_in_query: '1',
    cancel_http_readonly_queries_on_client_close: '1',
    // A statement with the id of one that runs ends it, and does not wait for that: see HttpClickHouseReader.
    replace_running_query: '1',
    replace_running_query_max_wait_ms: '0',
    // Reading ahead in every part is slower where the rows of a page lie far apart.
    read_in_order_use_buffering: '0',
    // Above this number of parts, 100 by default, ClickHouse merges their sorted rows in two steps, and the first one
    // reads many more rows of each part than a page needs.
    read_in_order_two_level_merge_threshold: '100000',
    // Text indexes say which granules to read; the rows themselves decide. With use_top_k_dynamic_filtering,
    // ClickHouse 26.7 loses rows of a page if it answers from such an index alone. Counts do: see COUNT_SETTINGS.
    query_plan_direct_read_from_text_index: '0',
    query_plan_text_index_add_hint: '0',
  };
}

/** Returns what a query may take, also one of a client, besides its time. */
export function budgetSettings(config: QueryConfig): QuerySettings {
  return {
    max_memory_usage: String(config.QUERY_MEMORY_BYTES_MAX),
    max_result_bytes: String(config.QUERY_RESULT_BYTES_MAX),
    // Counts what a query reads, not what it might read: a page of the table's order ends long before the table does.
    max_bytes_to_read: String(config.QUERY_BYTES_READ_MAX),
    // Counts what a query might read, before it starts. 0 is no limit.
    max_rows_to_read: String(config.QUERY_ROWS_READ_MAX ?? 0),
    // 0 is one thread per processor.
    max_threads: String(config.QUERY_THREADS_MAX ?? 0),
  };
}

/** Settings of a statement over several servers, besides those of each query. */
export const SEVERAL_SERVERS_SETTINGS: QuerySettings = {
  // `remote` is no writing, but 1 refuses it. The account itself may write nothing.
  readonly: '2',
  optimize_skip_unused_shards: '1',
  force_optimize_skip_unused_shards: '0',
  // One group for the rows of all servers.
  distributed_group_by_no_merge: '0',
  // A server that is away fails the query. Otherwise its rows would be missing from a page.
  skip_unavailable_shards: '0',
  // A host that does not answer is given up after a second, and a server that is silent after three: those that work report
  // progress all the time. Each has one address here, so there is nothing else to try.
  connections_with_failover_max_tries: '1',
  connect_timeout_with_failover_ms: '1000',
  connect_timeout_with_failover_secure_ms: '1000',
  handshake_timeout_ms: '3000',
  receive_timeout: '3',
  use_hedged_requests: '0',
};

/**
 * Settings of a query that only counts: the text index alone says which rows have a value, and ClickHouse does not read the
 * values. Together with use_top_k_dynamic_filtering, or with ORDER BY and LIMIT, ClickHouse 26.7 would lose rows.
 */
export const COUNT_SETTINGS: QuerySettings = {
  query_plan_direct_read_from_text_index: '1',
  use_top_k_dynamic_filtering: '0',
  query_plan_text_index_add_hint: '1',
};

/**
 * Settings by pool. Before each block, ClickHouse lets a report wait while a page runs, and an export while either does, for
 * 20 ms at most: it never stops, however many pages come. Small blocks end soon after the client left.
 */
export const POOL_SETTINGS: Readonly<Record<QueryPool, QuerySettings>> = {
  pages: { priority: '1' },
  reports: { priority: '2', low_priority_query_wait_time_ms: '20', max_block_size: '16384' },
  exports: {
    priority: '3',
    low_priority_query_wait_time_ms: '20',
    max_block_size: '8192',
    // An export may take any time, and read and return everything.
    max_execution_time: '0',
    max_bytes_to_read: '0',
    max_rows_to_read: '0',
    max_result_bytes: '0',
  },
};

/** How many rows a query with {@link LARGE_ROWS_SETTINGS} collects before it sends them. */
export const LARGE_ROWS_BLOCK = 128;

/**
 * Settings of a query that returns whole events in order, however large they are. ClickHouse fills blocks by rows: of the
 * default's some 10,000 events of 256 kB it would hold gigabytes. These hold few rows, and read fewer than a granule
 * of large ones from each part. They cost more than twice the CPU where events are small
 * (docs/design/decisions/0039-blocks-of-large-events.md).
 */
export const LARGE_ROWS_SETTINGS: QuerySettings = {
  max_block_size: String(LARGE_ROWS_BLOCK),
  preferred_max_column_in_block_size_bytes: '262144',
  // What fills this cache reads whole granules.
  use_query_condition_cache: '0',
  // Reads the rows of a LIMIT all at once.
  query_plan_optimize_lazy_materialization: '0',
  // Both hold a block for each thread.
  output_format_parallel_formatting: '0',
  output_format_parquet_parallel_encoding: '0',
};

/**
 * Settings of a query that is run again because it ran out of memory or has read too many bytes. PREWHERE of more than the
 * workspace reads whole granules, in each thread, and a filter on properties copies them. Of a granule that it shares with
 * others, it reads a block of their rows at most. Smaller ones than these take more than three times the CPU of an ordinary query.
 */
export const SMALL_BLOCKS_SETTINGS: QuerySettings = {
  ...LARGE_ROWS_SETTINGS,
  max_block_size: '64',
  optimize_move_to_prewhere: '0',
};

/**
 * Settings of a query for all workspaces. What all of them have stored is no budget of one, so how much it reads is not
 * limited: its time and its memory are.
 */
export const ALL_WORKSPACES_SETTINGS: QuerySettings = { max_bytes_to_read: '0', max_rows_to_read: '0' };

/** Returns the setting that ends a query after a time, in milliseconds. */
export function timeLimit(timeoutMs: number): QuerySettings {
  return { max_execution_time: String(timeoutMs / 1_000) };
}
