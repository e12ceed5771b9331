import { ROW_FORMAT } from '@sluice/shared/rows';
import { hiddenDeadLetters } from '../../store/deletions/hidden-events.ts';
import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';

/** Times are in milliseconds; `replayedMs` is 0 for a dead letter that waits, `client` is empty where none is known. */
export type DeadLetterRow = [
  id: string,
  recordedMs: number,
  replayedMs: number,
  kind: string,
  topic: string,
  partition: number,
  offset: string,
  line: number,
  reason: string,
  client: string,
  bytes: number,
];

const COLUMNS = `id, toUnixTimestamp64Milli(recorded_at), ifNull(toUnixTimestamp64Milli(replayed_at), 0), kind, topic,
  partition, toString(offset), line, reason, if(kind = 'rejected', JSONExtractString(row, 'client'), ''), length(row)`;

/**
 * Whether a row is of the workspace and of no other. It has to be a row as ingest-api writes it, which begins with its workspace:
 * a message that cannot be read may hold rows of several workspaces, and the column `workspace_id` then has that of the first.
 */
const OF_ONE_WORKSPACE = `format = {row_format:String}
  AND position(row, '\\n') = 0
  AND startsWith(row, concat('{"workspace_id":"', {workspace:String}, '",'))`;

function conditionsOf(tables: Tables): string {
  return `${OF_ONE_WORKSPACE} AND NOT (${hiddenDeadLetters(tables).sql})`;
}

/** Which dead letters of a workspace are listed. */
export interface DeadLettersList {
  /** Default: both. */
  readonly replayed: boolean | undefined;
  /** Default: all. */
  readonly kind: string | undefined;
  /** The one that the page begins after. Default: none. */
  readonly after: { readonly recordedMs: number; readonly id: string } | undefined;
  readonly rowsMax: number;
}

/** Before the newest dead letter of a list: the end of the range of DateTime64. */
const FIRST = { recordedMs: Date.UTC(2299, 11, 31), id: '' };

/** Returns the query for dead letters of a workspace, the newest first. */
export function deadLettersPageQuery(tables: Tables, { replayed, kind, after = FIRST, rowsMax }: DeadLettersList): Sql {
  return {
    sql: `SELECT ${COLUMNS}
FROM ${tables.deadLetters}
WHERE ${conditionsOf(tables)}
  AND {replayed:String} IN ('', if(replayed_at IS NULL, 'false', 'true'))
  AND {kind:String} IN ('', kind)
  AND (recorded_at, id) < (fromUnixTimestamp64Milli({recorded_ms:Int64}), {after_id:String})
ORDER BY recorded_at DESC, id DESC
LIMIT {rows_max:UInt64}`,
    params: {
      ...{ row_format: ROW_FORMAT, replayed: replayed === undefined ? '' : String(replayed), kind: kind ?? '' },
      ...{ recorded_ms: after.recordedMs, after_id: after.id, rows_max: rowsMax },
    },
  };
}

/** Returns the query for one dead letter of a workspace, with its row as text. */
export function deadLetterQuery(tables: Tables, id: string): Sql {
  return {
    sql: `SELECT ${COLUMNS}, row
FROM ${tables.deadLetters}
WHERE id = {id:String} AND ${conditionsOf(tables)}`,
    params: { row_format: ROW_FORMAT, id },
  };
}
