import type { ClickHouseSettings } from '@clickhouse/client';

/**
 * The settings that decide what the statements mean. Every request carries them, so neither the profile of the account,
 * nor its `compatibility`, nor the defaults of the server's version can change what is stored or returned.
 *
 * Limits of memory, time, threads and speed belong to the operator. query-api replaces some of the limits below.
 */
export const PINNED_SETTINGS = {
  // The language.
  enable_analyzer: '1',
  prefer_column_name_to_alias: '0',
  analyzer_compatibility_join_using_top_level_identifier: '0',
  single_join_prefer_left_table: '1',
  enable_scalar_subquery_optimization: '1',
  enable_named_columns_in_function_tuple: '0',
  asterisk_include_materialized_columns: '0',
  asterisk_include_alias_columns: '0',
  asterisk_include_virtual_columns: '0',

  // Joins and nulls. The deletion of a user who was never deleted is 0, not NULL.
  join_use_nulls: '0',
  join_default_strictness: 'ALL',
  join_algorithm: 'direct,parallel_hash,hash',
  transform_null_in: '0',
  group_by_use_nulls: '0',
  cast_keep_nullable: '0',
  data_type_default_nullable: '0',
  aggregate_functions_null_for_empty: '0',
  insert_null_as_default: '1',
  empty_result_for_aggregation_by_empty_set: '0',
  empty_result_for_aggregation_by_constant_keys_on_empty_set: '1',

  // A query reads every row of a table, and no other.
  final: '0',
  apply_deleted_mask: '1',
  apply_patch_parts: '1',
  additional_result_filter: '',
  additional_table_filters: '{}',
  limit: '0',
  offset: '0',
  use_query_cache: '0',
  enable_parallel_replicas: '0',
  select_sequential_consistency: '0',
  force_primary_key: '0',
  force_index_by_date: '0',
  force_optimize_projection: '0',

  // Exceeding a limit is an error, and never shortens a result.
  distinct_overflow_mode: 'throw',
  group_by_overflow_mode: 'throw',
  join_overflow_mode: 'throw',
  read_overflow_mode: 'throw',
  read_overflow_mode_leaf: 'throw',
  result_overflow_mode: 'throw',
  set_overflow_mode: 'throw',
  sort_overflow_mode: 'throw',
  timeout_overflow_mode: 'throw',
  timeout_overflow_mode_leaf: 'throw',

  // No limits on rows: a batch that exceeded one would exceed it at every retry.
  max_rows_to_read: '0',
  max_bytes_to_read: '0',
  max_rows_to_read_leaf: '0',
  max_bytes_to_read_leaf: '0',
  max_rows_to_group_by: '0',
  max_rows_to_sort: '0',
  max_bytes_to_sort: '0',
  max_rows_in_set: '0',
  max_bytes_in_set: '0',
  max_rows_in_join: '0',
  max_bytes_in_join: '0',
  max_rows_in_distinct: '0',
  max_bytes_in_distinct: '0',
  max_result_rows: '0',
  max_result_bytes: '0',
  max_columns_to_read: '0',
  max_temporary_columns: '0',
  max_temporary_non_const_columns: '0',
  max_partitions_to_read: '-1',
  min_execution_speed: '0',
  min_execution_speed_bytes: '0',
  max_query_size: '262144',
  max_ast_depth: '1000',
  max_ast_elements: '50000',
  max_expanded_ast_elements: '500000',
  max_parser_depth: '1000',
  max_parser_backtracks: '1000000',
  max_subquery_depth: '100',
  regexp_max_matches_per_row: '1000',

  // An insert stores all of its rows, at once.
  async_insert: '0',
  insert_deduplicate: '0',
  deduplicate_insert: 'disable',
  deduplicate_insert_select: 'disable',
  insert_deduplication_token: '',
  insert_quorum: '0',
  insert_allow_materialized_columns: '0',
  max_partitions_per_insert_block: '0',
  enable_full_text_index: '1',
  fsync_metadata: '1',
  alter_sync: '2',
  mutations_sync: '2',

  // A row is stored completely or refused. Otherwise a field that the staging tables do not have would be lost.
  input_format_allow_errors_num: '0',
  input_format_allow_errors_ratio: '0',
  input_format_skip_unknown_fields: '0',
  input_format_import_nested_json: '0',
  input_format_defaults_for_omitted_fields: '1',
  input_format_null_as_default: '1',
  input_format_column_name_matching_mode: 'auto',
  input_format_json_empty_as_default: '0',
  input_format_json_max_depth: '1000',
  input_format_json_read_numbers_as_strings: '1',
  input_format_json_read_objects_as_strings: '1',
  input_format_json_read_arrays_as_strings: '1',
  input_format_json_read_bools_as_strings: '1',
  input_format_json_read_bools_as_numbers: '1',
  input_format_json_throw_on_bad_escape_sequence: '1',
  date_time_input_format: 'best_effort',

  // Times, numbers and JSON.
  session_timezone: 'UTC',
  date_time_output_format: 'simple',
  date_time_overflow_behavior: 'ignore',
  date_time_64_output_format_cut_trailing_zeros_align_to_groups_of_thousands: '0',
  enable_extended_results_for_datetime_functions: '0',
  use_variant_as_common_type: '1',
  decimal_check_overflow: '1',
  allow_simdjson: '1',
  // Compiled, min and max take times before 1970 for later than all others (ClickHouse 26.7).
  compile_aggregate_expressions: '0',
  output_format_json_quote_64bit_integers: '0',
  output_format_json_quote_64bit_floats: '0',
  output_format_json_quote_decimals: '0',
  output_format_json_quote_denormals: '0',
  output_format_json_named_tuples_as_objects: '1',
  output_format_json_array_of_rows: '0',
  output_format_json_validate_utf8: '0',
  http_write_exception_in_output_format: '0',
} as const satisfies Readonly<Record<string, string>>;

/** {@link PINNED_SETTINGS} for the client, whose types do not know all of them. */
export const pinnedSettings = PINNED_SETTINGS as unknown as ClickHouseSettings;

/** Has ClickHouse store an insert only if none before had its token. The table remembers tokens for some time (migration 0040). */
export function settingsOfFirst(token: string): ClickHouseSettings {
  const settings = { insert_deduplicate: '1', deduplicate_insert: 'enable', insert_deduplication_token: token };
  return settings as unknown as ClickHouseSettings;
}

/**
 * The settings of every request where replicas share the rows of tables behind one address, in place of the pinned ones: a statement finds all
 * that was committed before it, wherever that was.
 */
export const SHARED_SETTINGS = {
  select_sequential_consistency: '1',
  // What an insert commits, it commits in the session of Keeper in which it began: a replica that has lost it stores nothing late.
  insert_keeper_max_retries: '0',
  // Who asks all replicas asks each, or gets an error.
  skip_unavailable_shards: '0',
  distributed_ddl_output_mode: 'throw',
  // Replicas come and go: a change waits for those that are there. Only tables of Cloud know this value.
  alter_sync: '3',
  mutations_sync: '3',
} as const satisfies Readonly<Record<string, string>>;

/** {@link SHARED_SETTINGS} for the client. */
export const sharedSettings = SHARED_SETTINGS as unknown as ClickHouseSettings;

/** On how many replicas rows, and records of their order, have to be before they count. */
export const QUORUM = 2;

/**
 * Returns the settings of what is stored at replicas, besides the pinned ones: an insert ends when its rows are on
 * {@link QUORUM} of them.
 *
 * @param count of replicas
 */
export function replicatedSettings(count: number, statementTimeoutMs: number): ClickHouseSettings {
  if (count < QUORUM) return {};
  return {
    insert_quorum: String(QUORUM),
    insert_quorum_parallel: 1,
    // ClickHouse's limit of a statement's time does not hold for this wait, nor does KILL end it.
    insert_quorum_timeout: statementTimeoutMs,
  };
}
