import { EVENT_HASH_SQL } from '@sluice/shared/row-hashes';
import type { QueryConfig } from '../config.ts';
import { EVENTS_OF_ALL_WORKSPACES, NEWEST_BLOCKS, type Sql, tables } from './sql.ts';

type TableName = keyof typeof tables;

/** Each row of a `sharded` table is on one shard. Of the tables that are `everywhere`, each shard has all rows. */
const PLACES: Readonly<Record<TableName, 'sharded' | 'everywhere'>> = {
  events: 'sharded',
  eventSizes: 'sharded',
  entities: 'sharded',
  entityProperties: 'sharded',
  userDeletions: 'everywhere',
  pendingDeletions: 'everywhere',
  userSightings: 'sharded',
  deadLetters: 'sharded',
};

/** With `identity`, ClickHouse finds the shard both of `identity(uuid) = …` and of `uuid = …`. */
const SHARDING_KEY = EVENT_HASH_SQL.replace('uuid', 'identity(uuid)');

/** The text that names a table of one server, with the text that names it on all shards. */
const SHARDED_TABLES = [
  ...(Object.keys(tables) as TableName[])
    .filter((name) => PLACES[name] === 'sharded')
    // Where a query asks for one uuid, ClickHouse leaves out the shards that cannot have it.
    .map((name) => shardedTable(tables[name], name === 'events' ? `, ${SHARDING_KEY}` : '')),
  shardedTable(EVENTS_OF_ALL_WORKSPACES),
  shardedTable(NEWEST_BLOCKS),
];

/** @param key the sharding key, behind a comma */
function shardedTable(local: string, key = '') {
  const view = `view${local.replace(/FROM (?=\w)/, 'FROM {database:Identifier}.')}`;
  return {
    local,
    sharded: `cluster({cluster:String}, ${view})`,
    keyed: `cluster({cluster:String}, ${view}${key})`,
  };
}

export type ShardsConfig = Pick<QueryConfig, 'CLICKHOUSE_CLUSTER' | 'CLICKHOUSE_DATABASE'>;

/**
 * Returns the statement that reads {@link tables} on all shards of CLICKHOUSE_CLUSTER; without a cluster, the statement
 * as it is.
 *
 * `cluster` makes a Distributed table that lasts for the statement. It sends each shard the statement with the view in
 * its place. So a shard filters, sorts, limits and aggregates by itself, and uses its sorting key and indexes as a
 * single server does. Of a sub-select from a Distributed table a shard would return all rows that pass the filters.
 */
export function onShards<Statement extends Sql>(statement: Statement, config: ShardsConfig): Statement {
  const { CLICKHOUSE_CLUSTER: cluster, CLICKHOUSE_DATABASE: database } = config;
  if (cluster === undefined) return statement;
  let { sql } = statement;
  for (const { local, sharded, keyed } of SHARDED_TABLES) {
    sql = sql.replaceAll(local, (_, index: number, text: string) => (isOutermost(text, index) ? keyed : sharded));
  }
  return { ...statement, sql, params: { ...statement.params, cluster, database } };
}

/** In a sub-select, ClickHouse would take the uuid of a sharding key for a column of the statement around it. */
function isOutermost(sql: string, index: number): boolean {
  let depth = 0;
  for (const character of sql.slice(0, index)) {
    if (character === '(') depth += 1;
    else if (character === ')') depth -= 1;
  }
  return depth === 0;
}

/** What a statement over shards needs, besides the settings of each query. */
export const SHARD_SETTINGS: Readonly<Record<string, string>> = {
  // A sub-select of a condition or a join is over all shards as well. It runs once, and its rows go to every shard.
  // Otherwise every shard would run it over all shards.
  prefer_global_in_and_join: '1',
  optimize_skip_unused_shards: '1',
  force_optimize_skip_unused_shards: '0',
  // One group for the rows of all shards.
  distributed_group_by_no_merge: '0',
  // A shard that is away fails the query. Otherwise its rows would be missing from a page.
  skip_unavailable_shards: '0',
};
