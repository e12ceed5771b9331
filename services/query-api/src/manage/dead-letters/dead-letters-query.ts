import { hiddenDeadLetters, type Row, type Sql, type Statement, type Tables } from '../../store/store.ts';

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
  partition, toString(offset), line, reason, client, row_bytes`;

/** Whether a row is of the workspace and of no other, and its user is not deleted. */
function conditionsOf(tables: Tables): string {
  return `is_of_one_workspace AND NOT (${hiddenDeadLetters(tables).sql})`;
}

/** Which dead letters of a workspace are listed. */
export interface DeadLettersList {
  /** Whether they were replayed. Default: both. */
  readonly replayed: 'true' | 'false' | undefined;
  /** Default: all. */
  readonly kind: string | undefined;
  /** Why they are dead letters, to the letter. Default: all. */
  readonly reason: string | undefined;
  /** The one that the page begins after. Default: none. */
  readonly after: DeadLetterPlace | undefined;
}

/** Where a dead letter stands in a list. */
interface DeadLetterPlace {
  readonly recordedMs: number;
  readonly id: string;
}

/** A state of a dead letter, which may have a newer one; when it was stored is in microseconds. */
type DeadLetterState = [...DeadLetterRow, stateUs: string];

/** Before the newest dead letter of a list: the end of the range of DateTime64. */
const FIRST = { recordedMs: Date.UTC(2299, 11, 31), id: '' };

/**
 * Returns the query for the next `count` states of dead letters of a workspace, the newest first. ClickHouse reads them in the
 * order of a projection, which has no rows' texts.
 */
function deadLetterStatesQuery(
  tables: Tables,
  { replayed, kind = '', reason = '', after = FIRST }: DeadLettersList,
  count: number,
): Sql {
  return {
    sql: `SELECT ${COLUMNS}, toString(toUnixTimestamp64Micro(state_at))
FROM ${tables.deadLetterStates}
WHERE ${conditionsOf(tables)}
  AND {replayed:String} IN ('', if(replayed_at IS NULL, 'false', 'true'))
  AND {kind:String} IN ('', kind)
  AND {reason:String} IN ('', reason)
  AND recorded_at <= fromUnixTimestamp64Milli({recorded_ms:Int64})
  AND (recorded_at < fromUnixTimestamp64Milli({recorded_ms:Int64}) OR id < {after_id:String})
ORDER BY recorded_at DESC, id DESC
LIMIT {count:UInt64} WITH TIES`,
    params: {
      ...{ replayed: replayed ?? '', kind, reason, count },
      ...{ recorded_ms: after.recordedMs, after_id: after.id },
    },
  };
}

/** Returns the query for when the newest states of some dead letters were stored, as in {@link DeadLetterState}. */
function newestStatesQuery(tables: Tables, ids: readonly string[]): Sql {
  return {
    sql: `SELECT id, toString(toUnixTimestamp64Micro(max(state_at)))
FROM ${tables.deadLetterStates}
WHERE id IN {ids:Array(String)}
GROUP BY id`,
    params: { ids },
  };
}

/** How many states one query reads at most, unless the page is longer. */
const STATES_MAX = 1_000;

/** Returns the rows of a query. */
export type ReadStates = (statement: Statement['statement']) => Promise<readonly Row[]>;

/**
 * Returns the first dead letters of a list. States are read in the order of the list, and those that have a newer one are left out:
 * a dead letter is stored again when it is replayed, and when it fails again.
 *
 * @throws {Problem} as the reads do
 */
export async function readDeadLetters(
  all: ReadStates,
  list: DeadLettersList,
  rowsMax: number,
): Promise<readonly DeadLetterRow[]> {
  const found: DeadLetterRow[] = [];
  let { after } = list;
  for (let count = rowsMax; ; count = Math.max(rowsMax, Math.min(4 * count, STATES_MAX))) {
    const from = { ...list, after };
    const states = (await all((tables) => deadLetterStatesQuery(tables, from, count))) as unknown as DeadLetterState[];
    const ids = [...new Set(states.map(([id]) => id))];
    const newest = new Map(
      (ids.length === 0 ? [] : await all((tables) => newestStatesQuery(tables, ids))) as unknown as [string, string][],
    );
    for (const state of states) {
      const [id] = state;
      if (newest.get(id) !== state.at(-1)) continue;
      // The same state may be stored twice: a writer repeats what it does not know to be stored.
      newest.delete(id);
      found.push(state.slice(0, -1) as DeadLetterRow);
      if (found.length === rowsMax) return found;
    }
    const last = states.at(-1);
    if (!last || states.length < count) return found;
    after = { recordedMs: last[1], id: last[0] };
  }
}

/** Returns the query for one dead letter of a workspace, with its row as text. */
export function deadLetterQuery(tables: Tables, id: string): Sql {
  return {
    sql: `SELECT ${COLUMNS}, row
FROM ${tables.deadLetterStates}
WHERE id = {id:String} AND ${conditionsOf(tables)}
ORDER BY state_at DESC
LIMIT 1`,
    params: { id },
  };
}

/** The reasons of so many dead letters of a workspace are counted, the newest. */
export const COUNTED_MAX = 10_000;

/** Times are in milliseconds; `count` is 0 of a reason that others have, `looked` is how many states of dead letters were looked at. */
export type ReasonRow = [
  kind: string,
  client: string,
  reason: string,
  count: number,
  newestMs: number,
  newestId: string,
  looked: number,
];

/** Whose reasons are counted, and how many reasons are returned at most. */
export interface ReasonsRequest extends Pick<DeadLettersList, 'replayed' | 'kind'> {
  readonly limit: number;
}

/**
 * Returns the query for why the newest dead letters of a workspace are some, the most frequent reason first. Of each dead letter
 * its newest state counts.
 */
export function reasonsQuery(tables: Tables, { replayed, kind = '', limit }: ReasonsRequest): Sql {
  return {
    sql: `WITH states AS (
  SELECT id, kind, client, reason, recorded_at, replayed_at, state_at
  FROM ${tables.deadLetterStates}
  WHERE ${conditionsOf(tables)}
  ORDER BY recorded_at DESC, id DESC
  LIMIT {counted:UInt64} WITH TIES
)
SELECT newest.1, newest.2, newest.3, toInt64(countIf(is_meant)) AS letters,
  toUnixTimestamp64Milli(maxIf(newest.4, is_meant) AS last), argMaxIf(id, newest.4, is_meant),
  (SELECT toInt64(count()) FROM states)
FROM (
  SELECT id, argMax((kind, client, reason, recorded_at, replayed_at), state_at) AS newest,
    {replayed:String} IN ('', if(newest.5 IS NULL, 'false', 'true')) AND {kind:String} IN ('', newest.1) AS is_meant
  FROM states
  GROUP BY id
)
GROUP BY newest.1, newest.2, newest.3
ORDER BY letters DESC, last DESC, newest.3
LIMIT {limit:UInt64}`,
    params: { replayed: replayed ?? '', kind, limit, counted: COUNTED_MAX },
  };
}
