import {
  EVENT_FIELDS,
  EVENT_SELECT,
  type EventRow,
  type EventSelection,
  filterConditions,
  ownersIn,
  sortKeyOf,
} from '../records/records.ts';
import {
  type Identity,
  type KnownMerges,
  keptSince,
  LOCAL_TABLES,
  queryStringOf,
  type Row,
  refuseTooLong,
  type Sql,
  type SqlValue,
  type Statement,
  shownConditions,
  type Tables,
} from '../store/store.ts';
import { newestProgress } from './progress-query.ts';
import { endOfBlock, isEndOfBlock, type StoredAt, type StreamPosition } from './stream-position.ts';

/** What some listeners are sent: the events of one workspace that match some filters. */
export interface StreamSelection extends Pick<EventSelection, 'fields' | 'properties'> {
  readonly workspace: string;
  /** Default: `raw`. */
  readonly identity?: Identity;
}

/** Which events of a workspace may be sent. */
export interface Shown {
  /** Writes the condition that the events of pending deletions meet, if there are any. */
  readonly hidden: Statement['statement'] | undefined;
  /** As {@link KeptFrom} returns it. */
  readonly keptFromMs: number | undefined;
  /** Whether visitors are linked to users: what selections see that ask for persons. */
  readonly isLinked: boolean;
  /** Which users became others. */
  readonly merges: KnownMerges | undefined;
}

/** What a query has besides the selection of one listener takes less, in its SQL and in its address. */
const SPARE = 32 * 1_024;

/**
 * Returns how many characters a selection adds to a query.
 *
 * @throws {QueryTooLong} when ClickHouse would not take a query for this selection alone
 */
export function weightOf(selection: StreamSelection): number {
  const shown = { hidden: undefined, keptFromMs: undefined, isLinked: true, merges: 'many' } as const;
  const { sql, params } = conditionOf(LOCAL_TABLES, selection, shown, { prefix: 's0_', workspaceIn: 'w0' });
  const address = queryStringOf({}, params);
  refuseTooLong(address, sql, SPARE);
  return sql.length + address.length;
}

/**
 * Returns the query for where the order of storage ends at this moment: every event up to there is visible, and no later
 * one.
 */
export function newestQuery(tables: Tables): Sql {
  return { sql: `SELECT shard, newest FROM ${tables.newestBlocks}`, params: {} };
}

/** As {@link newestQuery}, with what writers have recorded last in a third column. */
export function newestWithProgressQuery(tables: Tables): Sql {
  return { sql: `SELECT shard, newest, ${newestProgress(tables)} FROM ${tables.newestBlocks}`, params: {} };
}

/** Reads the rows of {@link newestQuery} or {@link newestWithProgressQuery}. */
export function newestPosition(rows: readonly Row[]): StreamPosition {
  return new Map(rows.map(([shard, block]) => [shard as number, endOfBlock(block as number)]));
}

/** A part of the order of storage. */
export interface Range {
  readonly from: StreamPosition;
  /** At the ends of blocks. */
  readonly to: StreamPosition;
}

/** A row of {@link pageQuery}. */
export interface StreamRow {
  readonly event: EventRow;
  readonly shard: number;
  readonly place: StoredAt;
  /** The selections that the event belongs to, by their index. */
  readonly selections: readonly number[];
}

/** An element of an array of the query, for the server that runs it; 0 for a server that the position does not name. */
const ofShard = (array: string) => `{${array}}[indexOf({shards:Array(UInt32)}, shard)]`;

/**
 * The rows of a part are sorted by workspace and time, so a block is not at one place in a part that was merged; but most
 * parts end before the first block of the range, and are left out.
 */
const IN_RANGE = `blocks_up_to >= ${ofShard('from_blocks:Array(UInt64)')}
  AND block BETWEEN ${ofShard('from_blocks:Array(UInt64)')} AND ${ofShard('to_blocks:Array(UInt64)')}
  AND (
    block > ${ofShard('from_blocks:Array(UInt64)')}
    OR (toUnixTimestamp64Milli(timestamp), toUInt128(uuid))
      > (${ofShard('after_times:Array(Int64)')}, toUInt128(${ofShard('after_uuids:Array(UUID)')}))
  )`;

/**
 * Returns the query for how many records of the order of each server come after a number and up to another one, at most so many, and which is the last
 * of these.
 *
 * @param records as {@link Tables.orderRecords}
 */
export function recordsQuery(records: string, { from, to, limit }: Range & { readonly limit: number }): Sql {
  return {
    sql: `SELECT shard, count(), max(record)
FROM (
  SELECT DISTINCT shard, record FROM ${records}
  WHERE record > ${ofShard('after:Array(UInt64)')} AND record <= ${ofShard('up_to:Array(UInt64)')}
  ORDER BY record
  LIMIT {limit:UInt32} BY shard
)
GROUP BY shard`,
    params: {
      limit,
      shards: [...to.keys()],
      after: [...to.keys()].map((shard) => from.get(shard)?.block ?? 0),
      up_to: [...to.values()].map(({ block }) => block),
    },
  };
}

/** A key before that of every event; the earliest ones are of 1900. */
const BEFORE_ALL_EVENTS = {
  timestampMs: Date.UTC(1899, 11, 31),
  uuid: '00000000-0000-0000-0000-000000000000',
} as const;

/**
 * Returns the query for the events after one position, up to and with another one at the ends of blocks, that belong to
 * any of some selections: in the order of storage, the first `limit` of them and those of equal keys.
 *
 * @param shown which events may be sent, by workspace
 */
export function pageQuery(
  tables: Tables,
  selections: readonly StreamSelection[],
  shown: ReadonlyMap<string, Shown>,
  { from, to, limit }: Range & { readonly limit: number },
): Sql {
  const workspaces = [...new Set(selections.map(({ workspace }) => workspace))];
  const conditions = selections.map((selection, index) => {
    // What is known of a workspace stands in the query once, however many selections are of it.
    const workspaceIn = `w${workspaces.indexOf(selection.workspace)}`;
    const { hidden, keptFromMs, isLinked = false, merges } = shown.get(selection.workspace) ?? {};
    const hiddenEvents = hidden?.(tables.ofWorkspaceIn(workspaceIn));
    const names = { prefix: `s${index}_`, workspaceIn };
    return conditionOf(tables, selection, { hidden: hiddenEvents, keptFromMs, isLinked, merges }, names);
  });
  const matches = conditions.map(({ sql }, index) => `if(${sql}, ${index}, -1)`);
  return {
    sql: `
SELECT ${EVENT_SELECT}, shard, block, arrayFilter(selection -> selection >= 0, [${matches.join(',\n  ')}]) AS selections
FROM ${tables.eventsOfAllWorkspaces}
WHERE ${IN_RANGE}
  AND workspace_id IN {workspaces:Array(String)}
  AND notEmpty(selections)
ORDER BY shard, block, timestamp, toUInt128(uuid)
LIMIT {limit:UInt32} WITH TIES`,
    params: Object.assign(
      { workspaces, limit },
      rangeParameters(from, to),
      ...conditions.map(({ params }) => params),
    ) as Record<string, SqlValue>,
  };
}

/** Reads a row of {@link pageQuery}. */
export function asStreamRow(row: Row): StreamRow {
  const event = row.slice(0, EVENT_FIELDS.length) as unknown as EventRow;
  const [shard, block, selections] = row.slice(EVENT_FIELDS.length) as [number, number, number[]];
  const { timestampMs, uuid } = sortKeyOf(event, 'timestamp');
  return { event, shard, place: { block, timestampMs, uuid }, selections };
}

/** The names of parameters, so that conditions of several selections stand in one query. */
interface ParameterNames {
  /** Begins those of a selection. */
  readonly prefix: string;
  /** That of its workspace. */
  readonly workspaceIn: string;
}

function conditionOf(
  tables: Tables,
  { workspace, identity, ...filters }: StreamSelection,
  { hidden, keptFromMs, isLinked, merges }: Omit<Shown, 'hidden'> & { readonly hidden: Sql | undefined },
  { prefix, workspaceIn }: ParameterNames,
): Sql {
  const inWorkspace = tables.ofWorkspaceIn(workspaceIn);
  const ofOne = identity === 'linked' && isLinked ? inWorkspace.withLinks(merges) : inWorkspace;
  const ofWorkspace = {
    sql: `workspace_id = ${ofOne.workspace}`,
    params: { ...ofOne.params, [workspaceIn]: workspace },
  };
  const keptFrom = `${prefix}kept_from`;
  const kept = keptFromMs === undefined ? [] : [{ sql: keptSince(keptFrom), params: { [keptFrom]: keptFromMs } }];
  const owners = {
    ...ownersIn(ofOne, hidden),
    // A page has few events, and a stream reads one after the other.
    within: {
      areFew: true,
      identifiers: (column: string): Sql => ({
        sql: `SELECT ${column} FROM ${tables.eventsOfAllWorkspaces} WHERE ${IN_RANGE} AND ${ofWorkspace.sql}`,
        params: {},
      }),
    },
  };
  const all = [ofWorkspace, ...kept, ...filterConditions(filters, owners, prefix), ...shownConditions(hidden)];
  return {
    sql: all.map(({ sql }) => `(${sql})`).join(' AND '),
    params: Object.assign({}, ...all.map(({ params }) => params)),
  };
}

function rangeParameters(from: StreamPosition, to: StreamPosition): Record<string, SqlValue> {
  const shards = [...to.keys()];
  const starts = shards.map((shard) => startAfter(from.get(shard)));
  return {
    shards,
    from_blocks: starts.map(({ block }) => block),
    to_blocks: [...to.values()].map(({ block }) => block),
    after_times: starts.map(({ timestampMs }) => timestampMs),
    after_uuids: starts.map(({ uuid }) => uuid),
  };
}

/** Returns the first block that may hold later events, and the key in it after which they come. */
function startAfter(place: StoredAt | undefined): StoredAt {
  if (place && !isEndOfBlock(place)) return place;
  return { block: place ? place.block + 1 : 0, ...BEFORE_ALL_EVENTS };
}
