import { PINNED_SETTINGS } from '../settings.ts';

/** For each setting whose pinned value is neither `0`, `1` nor `throw`: another value. */
const OTHER_VALUES: Readonly<Record<string, string>> = {
  join_default_strictness: 'ANY',
  join_algorithm: 'full_sorting_merge',
  additional_result_filter: '1 = 0',
  additional_table_filters: "{'events': '1 = 0', 'staged_events': '1 = 0'}",
  mutations_sync: '0',
  alter_sync: '0',
  max_partitions_to_read: '1',
  max_temporary_columns: '3',
  max_temporary_non_const_columns: '3',
  max_query_size: '300',
  max_ast_depth: '5',
  max_ast_elements: '10',
  max_expanded_ast_elements: '10',
  max_parser_depth: '20',
  max_parser_backtracks: '100',
  max_subquery_depth: '1',
  min_execution_speed: '1000000000000',
  min_execution_speed_bytes: '1000000000000000',
  regexp_max_matches_per_row: '1',
  deduplicate_insert: 'enable',
  deduplicate_insert_select: 'enable_when_possible',
  insert_deduplication_token: 'the same for all',
  insert_quorum: '2',
  input_format_allow_errors_num: '1000',
  input_format_column_name_matching_mode: 'match_case',
  input_format_json_max_depth: '2',
  date_time_input_format: 'basic',
  session_timezone: 'America/St_Johns',
  date_time_output_format: 'unix_timestamp',
  date_time_overflow_behavior: 'saturate',
};

/** ClickHouse refuses every statement of an account that has these together with the others. */
const NOT_BESIDE_THE_OTHERS = ['use_query_cache'];

/** Every pinned setting with another value than the pinned one, as the profile of an account. */
export const CONTRARY_SETTINGS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(PINNED_SETTINGS)
    .filter(([name]) => !NOT_BESIDE_THE_OTHERS.includes(name))
    .map(([name, pinned]) => [name, otherValue(name, pinned)]),
);

function otherValue(name: string, pinned: string): string {
  const other = OTHER_VALUES[name] ?? { '0': '1', '1': '0', throw: 'break' }[pinned];
  if (other === undefined) throw new Error(`no other value of ${name} than ${pinned} is known`);
  return other;
}
