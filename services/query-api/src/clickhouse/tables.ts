import { eventHashSql } from '@sluice/shared/row-hashes';
import type { QueryConfig } from '../config.ts';
import type { Sql } from './sql.ts';

/**
 * The tables as a FROM names them, each restricted to one workspace, and those of events to events that have not expired.
 * Statements name tables in no other way, so that none can leave out these conditions; the query runner binds the
 * parameter of the workspace, and those of `params`.
 */
export interface Tables {
  /** Values of parameters that the names below have, besides the workspace. */
  readonly params: Sql['params'];
  readonly events: string;
  /**
   * The same events, for counts that a projection answers: it has the time of no event, but the start of its unit.
   *
   * @param start the expression of the hour or day of UTC; events expire by whole days
   */
  eventsByUnit(start: string): string;
  /**
   * The events, for the outermost FROM of a statement alone: where it asks for one uuid, ClickHouse leaves out the shards
   * that cannot have it. In a sub-select, ClickHouse would take the uuid for a column of the statement around it.
   */
  readonly eventsByUuid: string;
  /** The events with `json_bytes`. ClickHouse keeps the sizes of texts apart from the texts, and reads them alone. */
  readonly eventSizes: string;
  readonly entities: string;
  readonly entityProperties: string;
  readonly userDeletions: string;
  readonly pendingDeletions: string;
  readonly userSightings: string;
  /** The newest state of each dead letter. */
  readonly deadLetters: string;
  /** To learn which workspaces have pending deletions. */
  readonly pendingDeletionsOfAllWorkspaces: string;
  /** For how many days events are kept: the newest setting of each workspace. */
  readonly retentionOfAllWorkspaces: string;
  /**
   * The events of all workspaces, for the stream alone: its statements compare the workspace in each of their conditions, and
   * leave out its expired events.
   * `block` is the number of the insert that stored the row, `blocks_up_to` the highest one of the row's part: ClickHouse
   * leaves out whole parts by it. `shard` is the number of the server, 0 without a cluster.
   */
  readonly eventsOfAllWorkspaces: string;
  /**
   * The newest number that each server has given to an insert or a mutation, as `shard` and `newest`. The name of a part
   * has both: partition, lowest block, highest block, level, mutation. ClickHouse answers from its list of parts, and
   * reads no rows.
   */
  readonly newestBlocks: string;
  /** Returns the same tables, restricted to the workspace in another parameter. */
  ofWorkspaceIn(parameter: string): Tables;
  /** Returns the same tables without the events before a time, in milliseconds: the start of a UTC day. */
  keptFrom(ms: number): Tables;
}

export type TablesConfig = Pick<QueryConfig, 'CLICKHOUSE_CLUSTER' | 'CLICKHOUSE_DATABASE'>;

/** Returns the tables of one server, or those on all shards of CLICKHOUSE_CLUSTER. */
export function tablesOf({ CLICKHOUSE_CLUSTER: cluster, CLICKHOUSE_DATABASE: database }: TablesConfig): Tables {
  return cluster === undefined ? LOCAL_TABLES : createTables(onAllShards, { cluster, database });
}

/** A SELECT from a stored table. `database` stands before the name of the table. */
type Select = (database: string) => string;

/** Makes a SELECT something to read FROM. */
type Source = (select: Select, shardingKey?: string) => string;

/** ClickHouse plans such a sub-select like the bare table: it still uses the sorting key, the indexes and lazy reading. */
const onThisServer: Source = (select) => `(${select('')})`;

/**
 * `cluster` makes a Distributed table that lasts for the statement. It sends each shard the statement with the view in
 * its place. So a shard filters, sorts, limits and aggregates by itself, and uses its sorting key and indexes as a
 * single server does. Of a sub-select from a Distributed table a shard would return all rows that match the filters.
 */
const onAllShards: Source = (select, shardingKey) => {
  const view = `view(${select('{database:Identifier}.')})`;
  return `cluster({cluster:String}, ${view}${shardingKey === undefined ? '' : `, ${shardingKey}`})`;
};

/** With `identity`, ClickHouse finds the shard both of `identity(uuid) = …` and of `uuid = …`. */
const EVENTS_SHARDING_KEY = eventHashSql('identity(uuid)');

/** Returns the condition that an event has not expired; a parameter has the time from which on events are kept. */
export function keptSince(parameter: string, time = 'timestamp'): string {
  return `${time} >= fromUnixTimestamp64Milli({${parameter}:Int64})`;
}

const KEPT_FROM = 'kept_from';

/** @param source of the tables whose rows are each on one shard; of the others, each shard has all rows */
function createTables(source: Source, params: Sql['params'], workspace = 'workspace'): Tables {
  const ofWorkspace =
    (table: string, columns = '*', more = ''): Select =>
    (database) =>
      `SELECT ${columns} FROM ${database}${table} WHERE workspace_id = {${workspace}:String}${more}`;
  const kept = (columns?: string, time?: string) =>
    ofWorkspace('events', columns, KEPT_FROM in params ? ` AND ${keptSince(KEPT_FROM, time)}` : '');
  return {
    params,
    events: source(kept()),
    eventsByUnit: (start) => source(kept('*', start)),
    eventsByUuid: source(kept(), EVENTS_SHARDING_KEY),
    eventSizes: source(kept('*, properties.size + context.size + traits.size AS json_bytes')),
    entities: source(ofWorkspace('entities')),
    entityProperties: source(ofWorkspace('entity_properties')),
    userDeletions: onThisServer(ofWorkspace('user_deletions')),
    pendingDeletions: onThisServer(ofWorkspace('pending_deletions')),
    userSightings: source(ofWorkspace('user_sightings')),
    deadLetters: source(ofWorkspace('dead_letters FINAL')),
    pendingDeletionsOfAllWorkspaces: 'pending_deletions',
    retentionOfAllWorkspaces: 'retention FINAL',
    eventsOfAllWorkspaces: source(selectEventsWithBlocks),
    newestBlocks: source(selectNewestBlocks),
    ofWorkspaceIn: (parameter) => createTables(source, params, parameter),
    keptFrom: (ms) => createTables(source, { ...params, [KEPT_FROM]: ms }, workspace),
  };
}

const selectEventsWithBlocks: Select = (database) => `
  SELECT
    *,
    _block_number AS block,
    toUInt64OrZero(splitByChar('_', _part)[3]) AS blocks_up_to,
    shardNum() AS shard
  FROM ${database}events
`;

const selectNewestBlocks: Select = (database) => `
  SELECT
    shardNum() AS shard,
    max(greatest(toUInt64OrZero(splitByChar('_', _part)[3]), toUInt64OrZero(splitByChar('_', _part)[5]))) AS newest
  FROM (SELECT _part, count() FROM ${database}events GROUP BY _part)
`;

/** The tables of one server. */
export const LOCAL_TABLES = createTables(onThisServer, {});
