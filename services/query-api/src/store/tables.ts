import {
  conflictsSql,
  deletedVisitorsSql,
  mergesSql,
  type OwnersOptions,
  ownersSql,
  saidMergesSql,
  unsettledSql,
} from '@sluice/shared/clickhouse/identities';
import { eventHashSql } from '@sluice/shared/rows/row-hashes';
import type { Sql } from './sql.ts';

/**
 * The tables as a FROM names them, each restricted to one workspace, and those of events to events that have not expired.
 * Statements name tables in no other way, so that none can leave out these conditions; the query runner binds the
 * parameter of the workspace, and those of `params`.
 */
export interface Tables {
  /** Whether they are on several servers. A statement about them needs rights and settings of its own. */
  readonly onSeveralServers: boolean;
  /** The placeholder of the workspace, for what compares with it besides the tables. */
  readonly workspace: string;
  /** Values of parameters that the names below have, besides the workspace. One may be a password. */
  readonly params: Sql['params'];
  readonly events: string;
  /**
   * The same events, for counts that a projection answers: it has the time of no event, but the start of its unit.
   *
   * @param start the expression of the hour or day of UTC; events expire by whole days
   */
  eventsByUnit(start: string): string;
  /**
   * The events, for the outermost FROM of a statement alone: where it asks for one uuid, ClickHouse leaves out the servers
   * that cannot have it. In a sub-select, ClickHouse would take the uuid for a column of the statement around it.
   */
  readonly eventsByUuid: string;
  /** The same events in several parts, one behind the other: each with columns of its own, and with those rows that meet its conditions. */
  eventsInParts(parts: readonly EventsPart[]): string;
  /** What is known of the fast properties of the workspace. */
  readonly fast: FastSets;
  /** Whether a request asks for persons, in place of what was sent: then visitors of nobody are persons as well. */
  readonly arePersons: boolean;
  /** Whether statements see whose the events of anonymous visitors are. */
  readonly areLinked: boolean;
  /** Whether they see besides which users became others. */
  readonly areMerged: boolean;
  /** Which users became others, where it is known. */
  readonly namedMerges: Exclude<KnownMerges, 'many'> | undefined;
  /** What links visitors to users, as it is stored. */
  readonly identityLinks: string;
  /**
   * The visitors that belong to a user: `anonymous_id` and `user_id`, once each. A server knows all about the visitors of its partitions.
   *
   * @param among which visitors are looked at. Default: all
   */
  owners(among?: Visitors): string;
  /**
   * The links of visitors to others than their owners: `anonymous_id`, `user_id`, which is the owner, `other_user_id` and `version`.
   *
   * @param among which visitors are looked at. Default: all
   */
  linkConflicts(among?: Visitors): string;
  /** What was said last of merged users: `merged`, `person`, whom each became, and `merged_version`. */
  readonly saidMerges: string;
  /** The `merged` and the `person` of those of {@link saidMerges} that count: nobody merged the person into somebody else. */
  readonly merges: string;
  /** SQL of the same as two arrays of one length, which begin with the empty text. */
  readonly mergeArrays: MergeArrays;
  /**
   * The visitors of deleted users, and those merged into these, who have no deletion of their own yet, as deletions name them: `user_id`, and
   * the `version` of the user's deletion.
   */
  readonly deletedVisitors: string;
  /** The events with `json_bytes`. ClickHouse keeps the sizes of texts apart from the texts, and reads them alone. */
  readonly eventSizes: string;
  readonly entities: string;
  readonly entityProperties: string;
  readonly userDeletions: string;
  readonly pendingDeletions: string;
  readonly userSightings: string;
  /** The states of dead letters, of which the newest one of each counts, with what was computed of its row when it was stored. */
  readonly deadLetterStates: string;
  /** The audits that looked at the workspace, or at all, of each server: `shard` is its number. What they counted is of all. */
  readonly audits: string;
  /** The books of the workspace: those of each hour that its newest audit has. */
  readonly auditedHours: string;
  readonly auditDifferences: string;
  /** The same of all workspaces, for operators alone. */
  readonly auditedHoursOfAllWorkspaces: string;
  /** The lists of fast properties that the workspace of a parameter has had, on each server. */
  fastPropertiesOf(parameter: string): string;
  /** What reads of the workspace of a parameter see that do not say it, as it was set on each server. */
  identitySettingsOf(parameter: string): string;
  /** To learn which workspaces have pending deletions. */
  readonly pendingDeletionsOfAllWorkspaces: string;
  /** For how many days events are kept: the newest setting of each workspace. */
  readonly retentionOfAllWorkspaces: string;
  /**
   * The events of all workspaces, for the stream alone: its statements compare the workspace in each of their conditions, and
   * leave out its expired events.
   * `block` is the number of the insert that stored the row, `blocks_up_to` the highest one of the row's part: ClickHouse
   * leaves out whole parts by it. `shard` is the number of the server, counted from 1, or 0 where there is one.
   */
  readonly eventsOfAllWorkspaces: string;
  /**
   * The newest number that each server has given to an insert or a mutation, as `shard` and `newest`. The name of a part
   * has both: partition, lowest block, highest block, level, mutation. ClickHouse answers from its list of parts, and
   * reads no rows. Where ClickHouse replicates the events: the number up to which the server has everything; 0 while it was not told any.
   */
  readonly newestBlocks: string;
  /** What writers have recorded of their progress on each server: `shard`, `recorded_at`, `through` and `newest_block`. */
  readonly storingProgress: string;
  /**
   * The numbers that took the place of those of blocks where ClickHouse replicates the events, as `record`, of each `shard`: writers give them to
   * blocks in the order in which these are on two replicas. Undefined where numbers of blocks are the order.
   */
  readonly orderRecords: string | undefined;
  /** Returns the same tables, restricted to the workspace in another parameter. */
  ofWorkspaceIn(parameter: string): Tables;
  /**
   * Returns the same tables, of which ClickHouse compares the workspace of a row before it reads any other column. The rows of
   * other workspaces that lie beside those of one then cost a statement little, and ClickHouse moves no other condition to PREWHERE.
   */
  comparingWorkspaceFirst(): Tables;
  /** Returns the same tables without the events before a time, in milliseconds: the start of a UTC day. */
  keptFrom(ms: number): Tables;
  /** Returns the same tables, of which it is known what columns of the workspace's events have. */
  withFast(fast: FastSets): Tables;
  /** Returns the same tables for a request that asks for persons. */
  withPersons(): Tables;
  /**
   * Returns the same tables, of which statements see whose the events of anonymous visitors are.
   *
   * @param merges which users became others, as statements see it. Default: none did
   */
  withLinks(merges?: KnownMerges): Tables;
  /** Returns the same tables, of which it is known that no deletion of the workspace is pending. */
  withoutPending(): Tables;
  /** Returns the same tables with further deletions: those that another server has, and this one perhaps not yet, or that follow from others. */
  withDeletions(deletions: readonly Deletion[]): Tables;
}

/** Some rows of the events. */
export interface EventsPart {
  /** Expressions besides the columns of the table, each with its name. */
  readonly columns: readonly string[];
  /**
   * The condition that makes them this part. It reads small columns alone. ClickHouse is told to begin with it: to find that out takes it
   * several milliseconds, and it would read the columns of filters of all rows.
   */
  readonly rows: string;
  /** Further conditions, for the rows of the part alone. */
  readonly filters: readonly string[];
}

/** Some visitors. */
export interface Visitors {
  /** A condition on their `anonymous_id`. */
  readonly visitors?: string;
  /** A condition on the `user_id` of a link: visitors that have such a link, whoever they belong to. */
  readonly linkedTo?: string;
}

/** SQL of two arrays: who was merged, and whom each became. */
export interface MergeArrays {
  readonly merged: string;
  readonly persons: string;
}

/** The merges of a workspace that count, or that they are more than a statement may name: then each finds them by itself. */
export type KnownMerges = readonly { readonly merged: string; readonly person: string }[] | 'many';

export function areAnyMerged(merges: KnownMerges | undefined): boolean {
  return merges === 'many' || (merges ?? []).length > 0;
}

/** A list of fast properties that a workspace has or had. */
export interface FastSet {
  /** As `row_set` of it says: a number of 64 bits. */
  readonly id: string;
  /** The names of properties by column, from the first one on. An empty one: the column has none. */
  readonly names: readonly string[];
}

/** The lists of fast properties of a workspace, the newest first. That one is in force. */
export type FastSets = readonly FastSet[];

/** The deletion of a user of a workspace. */
export interface Deletion {
  readonly user: string;
  /** In microseconds since 1970. */
  readonly version: number;
}

/** Servers that have the rows of different partitions. */
export interface ServersOfRanges {
  /** Host and port of the native protocol of each, the one that statements are sent to first: it reads itself. */
  readonly addresses: readonly string[];
  /** Whether they speak the native protocol over TLS. */
  readonly tls: boolean;
  readonly database: string;
  readonly user: string;
  readonly password: string;
  /** The position in `addresses` of the server that has each partition. */
  readonly serverOfPartition: readonly number[];
}

/** A SELECT from a stored table. `database` stands before the name of the table. */
type Select = (database: string) => string;

/** Makes a SELECT something to read FROM. */
type Source = (select: Select, shardingKey?: string) => string;

/** ClickHouse plans such a sub-select like the bare table: it still uses the sorting key, the indexes and lazy reading. */
const onThisServer: Source = (select) => `(${select('')})`;

/**
 * `remote` makes a Distributed table that lasts for the statement. It sends each server the statement with the view in
 * its place. So a server filters, sorts, limits and aggregates by itself, and uses its sorting key and indexes as a
 * single one does. Of a sub-select from a Distributed table a server would return all rows that match the filters.
 */
function onServers(tls: boolean): Source {
  return (select, shardingKey) => {
    const view = `view(${select('{database:Identifier}.')})`;
    const key = shardingKey === undefined ? '' : `, ${shardingKey}`;
    return `${tls ? 'remoteSecure' : 'remote'}({addresses:String}, ${view}, {remote_user:String}, {remote_password:String}${key})`;
  };
}

/** With `identity`, ClickHouse finds the server both of `identity(uuid) = …` and of `uuid = …`. */
const EVENTS_SHARDING_KEY = `{server_of_partition:Array(UInt8)}[1 + ${eventHashSql('identity(uuid)')} % {partitions:UInt32}]`;

/**
 * Returns the tables of servers, each of which has the rows of some partitions.
 *
 * @param areReplicated whether ClickHouse replicates them. Default: false
 */
export function tablesOfServers(servers: ServersOfRanges, areReplicated = false): Tables {
  const { addresses, tls, database, user, password, serverOfPartition } = servers;
  const params = {
    ...{ addresses: addresses.join(','), database, remote_user: user, remote_password: password },
    ...{ server_of_partition: serverOfPartition, partitions: serverOfPartition.length },
  };
  return createTables(onServers(tls), { params, areReplicated });
}

/** Returns the condition that an event has not expired; a parameter has the time from which on events are kept. */
export function keptSince(parameter: string, time = 'timestamp'): string {
  return `${time} >= fromUnixTimestamp64Milli({${parameter}:Int64})`;
}

const KEPT_FROM = 'kept_from';

/**
 * Returns a table of deletions, with those of two parameters if there are any.
 *
 * @param names of the parameters with the users and the versions
 */
function withGiven(stored: string, workspace: string, params: Sql['params'], names: DeletionParameters): string {
  if (!(names.users in params)) return stored;
  const given = `arrayZip({${names.users}:Array(String)}, {${names.versions}:Array(UInt64)})`;
  return `(
  SELECT workspace_id, user_id, version FROM ${stored}
  UNION ALL
  SELECT {${workspace}:String}, deletion.1, deletion.2 FROM (SELECT arrayJoin(${given}) AS deletion)
)`;
}

interface DeletionParameters {
  readonly users: string;
  readonly versions: string;
}

function deletionParams(deletions: readonly Deletion[], { users, versions }: DeletionParameters): Sql['params'] {
  return { [users]: deletions.map(({ user }) => user), [versions]: deletions.map(({ version }) => version) };
}

function givenDeletions(params: Sql['params'], { users, versions }: DeletionParameters): readonly Deletion[] {
  const versionOf = (index: number) => (params[versions] as readonly number[])[index] ?? 0;
  return ((params[users] ?? []) as readonly string[]).map((user, index) => ({ user, version: versionOf(index) }));
}

/** Returns the last deletion of each. */
export function newestDeletions(deletions: Iterable<Deletion>): readonly Deletion[] {
  const newest = new Map<string, Deletion>();
  for (const deletion of deletions) {
    const known = newest.get(deletion.user);
    if (!known || known.version < deletion.version) newest.set(deletion.user, deletion);
  }
  return [...newest.values()];
}

interface MergeParameters {
  readonly users: string;
  readonly persons: string;
}

/** Each list begins with nobody: `transform` takes no empty arrays. */
function mergeParams(merges: KnownMerges | undefined, { users, persons }: MergeParameters): Sql['params'] {
  if (merges === undefined || merges === 'many') return {};
  return {
    [users]: ['', ...merges.map(({ merged }) => merged)],
    [persons]: ['', ...merges.map(({ person }) => person)],
  };
}

/** Returns what is known of merges. Those that are named are in two parameters, and no statement looks for any. */
function mergesKnown(
  merges: KnownMerges | undefined,
  { users, persons }: MergeParameters,
): Pick<Tables, 'areMerged' | 'namedMerges'> & Partial<Pick<Tables, 'merges' | 'mergeArrays'>> {
  if (merges === undefined || merges === 'many') return { areMerged: areAnyMerged(merges), namedMerges: undefined };
  const mergeArrays = { merged: `{${users}:Array(String)}`, persons: `{${persons}:Array(String)}` };
  const pairs = `SELECT arrayJoin(arrayZip(${mergeArrays.merged}, ${mergeArrays.persons})) AS pair`;
  return {
    ...{ areMerged: areAnyMerged(merges), namedMerges: merges, mergeArrays },
    merges: `(SELECT pair.1 AS merged, pair.2 AS person FROM (${pairs}) WHERE merged != '')`,
  };
}

interface TableOptions {
  readonly params: Sql['params'];
  /** Whether ClickHouse replicates the tables. Default: false. */
  readonly areReplicated?: boolean;
  /** The parameter of the workspace. Default: `workspace`. */
  readonly workspace?: string;
  /** By which keyword the workspace of a row is compared. Default: `WHERE`. */
  readonly where?: 'WHERE' | 'PREWHERE';
  readonly fast?: FastSets;
  readonly arePersons?: boolean;
  readonly areLinked?: boolean;
  readonly merges?: KnownMerges | undefined;
  /** Whether a deletion may be pending. Default: true. */
  readonly isPending?: boolean;
}

/** What `*` leaves out is computed when a row is stored. */
const DEAD_LETTER_COLUMNS = '*, user_id, version, is_of_one_workspace, client, row_bytes';

function createTables(source: Source, options: TableOptions): Tables {
  const { params, workspace = 'workspace', where = 'WHERE', fast = [], merges } = options;
  const { arePersons = false, areLinked = false, isPending = true } = options;
  const changed = (changes: Partial<TableOptions>) => createTables(source, { ...options, ...changes });
  const deleted = { users: `${workspace}_deleted_users`, versions: `${workspace}_deleted_versions` };
  const merged = { users: `${workspace}_merged_users`, persons: `${workspace}_merged_persons` };
  const ofWorkspace =
    (table: string, columns = '*', more = '', clause = where): Select =>
    (database) =>
      `SELECT ${columns} FROM ${database}${table} ${clause} workspace_id = {${workspace}:String}${more}`;
  const storedDeletions = (table: string) => ofWorkspace(table, 'workspace_id, user_id, version');
  const deletions = (table: string, read = source) =>
    withGiven(read(storedDeletions(table)), workspace, params, deleted);
  const kept = (columns?: string, time?: string, clause = where) =>
    ofWorkspace('events', columns, KEPT_FROM in params ? ` AND ${keptSince(KEPT_FROM, time)}` : '', clause);
  const partOf =
    ({ columns, rows, filters }: EventsPart): Select =>
    (database) => {
      const conditions = filters.map((condition) => `(${condition})`).join(' AND ');
      const more = conditions === '' ? '' : ` WHERE ${conditions}`;
      return `${kept(['*', ...columns].join(', '), undefined, 'PREWHERE')(database)} AND (${rows})${more}`;
    };
  return {
    onSeveralServers: source !== onThisServer,
    workspace: `{${workspace}:String}`,
    params,
    events: source(kept()),
    eventsByUnit: (start) => source(kept('*', start)),
    eventsInParts: (parts) => source((database) => parts.map((part) => partOf(part)(database)).join('\nUNION ALL\n')),
    fast,
    eventsByUuid: source(kept(), EVENTS_SHARDING_KEY),
    arePersons,
    areLinked,
    ...linkTables(source, ofWorkspace, deletions, isPending),
    ...mergesKnown(merges, merged),
    eventSizes: source(kept('*, properties.size + context.size + traits.size AS json_bytes')),
    entities: source(ofWorkspace('entities')),
    entityProperties: source(ofWorkspace('entity_properties')),
    // A deletion that got `503` may be on some servers only.
    userDeletions: deletions('user_deletions'),
    pendingDeletions: deletions('pending_deletions'),
    userSightings: source(ofWorkspace('user_sightings')),
    deadLetterStates: source(ofWorkspace('dead_letters', DEAD_LETTER_COLUMNS)),
    audits: source(
      (database) =>
        `SELECT *, shardNum() AS shard FROM ${database}audits FINAL WHERE workspace_id IN ('', {${workspace}:String})`,
    ),
    auditedHours: source(ofWorkspace('audited_hours FINAL')),
    auditDifferences: source(ofWorkspace('audit_differences')),
    auditedHoursOfAllWorkspaces: source((database) => `SELECT * FROM ${database}audited_hours FINAL`),
    fastPropertiesOf: (parameter) => source(ofWorkspaceNamed('console_fast_properties', parameter)),
    identitySettingsOf: (parameter) => source(ofWorkspaceNamed('console_identity_settings', parameter)),
    pendingDeletionsOfAllWorkspaces: 'pending_deletions',
    retentionOfAllWorkspaces: 'retention FINAL',
    ...orderTables(source, options.areReplicated ?? false),
    ofWorkspaceIn: (parameter) => changed({ workspace: parameter, fast: [] }),
    comparingWorkspaceFirst: () => changed({ where: 'PREWHERE' }),
    keptFrom: (ms) => changed({ params: { ...params, [KEPT_FROM]: ms } }),
    withFast: (known) => changed({ fast: known }),
    withPersons: () => changed({ arePersons: true }),
    withLinks: (known) =>
      changed({ areLinked: true, merges: known, params: { ...params, ...mergeParams(known, merged) } }),
    withoutPending: () => changed({ isPending: false }),
    withDeletions(more) {
      const given = newestDeletions([...givenDeletions(params, deleted), ...more]);
      return changed({ params: { ...params, ...deletionParams(given, deleted) } });
    },
  };
}

/**
 * Returns the tables about links. A server has all links of its visitors, and all deletions, so what each finds out of its own is whole.
 *
 * @param ofWorkspace returns the rows of the workspace in a table, with certain columns and conditions
 * @param deletionsIn returns the deletions of a table from a source, with those that are given besides
 * @param isPending whether there may be any
 */
function linkTables(
  source: Source,
  ofWorkspace: (table: string, columns?: string, more?: string) => Select,
  deletionsIn: (table: string, read: Source) => string,
  isPending: boolean,
): Pick<
  Tables,
  'identityLinks' | 'owners' | 'linkConflicts' | 'saidMerges' | 'merges' | 'mergeArrays' | 'deletedVisitors'
> {
  const onEach = (select: (rowsOf: (stored: Select) => string, deletionsOf: (table: string) => string) => string) =>
    source((database) => {
      const here: Source = (stored) => `(${stored(database)})`;
      return select(here, (table) => deletionsIn(table, here));
    });
  const ofVisitors = (select: (options: OwnersOptions) => string, { visitors, linkedTo }: Visitors = {}) =>
    onEach((rowsOf, deletionsOf) => {
      const linked = rowsOf(ofWorkspace('identity_links', 'anonymous_id', ` AND (${linkedTo})`));
      const among = [...(visitors ? [visitors] : []), ...(linkedTo ? [`anonymous_id IN ${linked}`] : [])];
      const links = rowsOf(ofWorkspace('identity_links', '*', among.map((one) => ` AND (${one})`).join('')));
      return select({ links, pending: deletionsOf('pending_deletions') });
    });
  const ofDeletedUsers = onEach((rowsOf, deletionsOf) => {
    const stored = rowsOf(ofWorkspace('identity_deletions'));
    const unsettled = unsettledSql({ pending: deletionsOf('pending_deletions'), deletions: stored });
    const deletions = deletionsOf('identity_deletions');
    const ofUsers = `user_id IN (SELECT user_id FROM (${unsettled}))`;
    return deletedVisitorsSql({ links: rowsOf(ofWorkspace('identity_links')), deletions, unsettled, ofUsers });
  });
  const saidMerges = ofVisitors(saidMergesSql);
  const merges = `(${mergesSql(saidMerges)})`;
  // A scalar, which ClickHouse reads once.
  const arrays = `(SELECT (arrayPushFront(groupArray(merged), ''), arrayPushFront(groupArray(person), '')) FROM ${merges})`;
  return {
    identityLinks: source(ofWorkspace('identity_links')),
    owners: (among) =>
      ofVisitors(({ links, pending }) => ownersSql({ links, pending: isPending ? pending : undefined }), among),
    linkConflicts: (among) => ofVisitors(conflictsSql, among),
    saidMerges,
    merges,
    mergeArrays: { merged: `tupleElement(${arrays}, 1)`, persons: `tupleElement(${arrays}, 2)` },
    deletedVisitors: ofDeletedUsers,
  };
}

const ofWorkspaceNamed =
  (table: string, parameter: string): Select =>
  (database) =>
    `SELECT * FROM ${database}${table} WHERE workspace_id = {${parameter}:String}`;

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

const selectProgress: Select = (database) => `
  SELECT shardNum() AS shard, recorded_at, through, newest_block
  FROM ${database}storing_progress
`;

/**
 * The row in which a writer says what a replica has reached. One from before the replica was started does not count: parts that were not on its disk
 * yet may be gone. Both times are rounded to seconds.
 */
const REACHED = `record = 0
    AND abs(toInt64(toUnixTimestamp(started_at)) - (toInt64(toUnixTimestamp(now())) - toInt64(uptime()))) <= 1`;

const selectReached: Select = (database) => `
  SELECT shardNum() AS shard, max(number) AS newest FROM ${database}stream_order WHERE ${REACHED}
`;

const selectReachedThrough: Select = (database) => `
  SELECT shardNum() AS shard, recorded_at, through, number AS newest_block
  FROM ${database}stream_order WHERE ${REACHED} AND through > 0
`;

const selectOrderRecords: Select = (database) => `
  SELECT shardNum() AS shard, record FROM ${database}stream_order WHERE record > 0
`;

/** An element of a parameter of pages, for the server that runs the statement. */
const ofThisShard = (parameter: string) => `{${parameter}:Array(UInt64)}[indexOf({shards:Array(UInt32)}, shardNum())]`;

/**
 * In place of its block, an event has the number that its block got. `transform` looks it up among the blocks of a page, each with its partition, at
 * the same cost for each row however many there are; it takes no empty arrays. `blocks_up_to` leaves out the parts that have none of these.
 */
const selectNumberedEvents: Select = (database) => {
  const ranges = `
      FROM ${database}stream_order ARRAY JOIN partitions AS partition, firsts AS first, lasts AS last
      WHERE record BETWEEN ${ofThisShard('from_blocks')} AND ${ofThisShard('to_blocks')}`;
  const blocks = `(
    SELECT (arrayPushFront(groupArray(block), 0), arrayPushFront(groupArray(record), 0))
    FROM (
      SELECT record, bitShiftLeft(toUInt64(partition), 40) + arrayJoin(range(first, last + 1)) AS block${ranges}
    )
  )`;
  const bounds = `(
    SELECT (
      arrayPushFront(groupArray(month), 0), arrayPushFront(groupArray(lowest), 0), arrayPushFront(groupArray(highest), 0)
    )
    FROM (
      SELECT partition AS month, min(first) AS lowest, max(last) AS highest${ranges}
      GROUP BY month
    )
  )`;
  const partition = 'toUInt32OrZero(_partition_id)';
  const boundOf = (element: number, other: string) =>
    `transform(${partition}, tupleElement(${bounds}, 1), tupleElement(${bounds}, ${element}), toUInt64(${other}))`;
  return `
  SELECT
    *,
    transform(
      bitShiftLeft(toUInt64(${partition}), 40) + _block_number, tupleElement(${blocks}, 1), tupleElement(${blocks}, 2), toUInt64(0)
    ) AS block,
    if(
      toUInt64OrZero(splitByChar('_', _part)[2]) <= ${boundOf(3, '0')}
        AND toUInt64OrZero(splitByChar('_', _part)[3]) >= ${boundOf(2, '18446744073709551615')},
      ${ofThisShard('to_blocks')},
      0
    ) AS blocks_up_to,
    shardNum() AS shard
  FROM ${database}events
  WHERE block > 0
`;
};

/** Returns the tables that streams follow. */
function orderTables(
  source: Source,
  areReplicated: boolean,
): Pick<Tables, 'eventsOfAllWorkspaces' | 'newestBlocks' | 'storingProgress' | 'orderRecords'> {
  return {
    eventsOfAllWorkspaces: source(areReplicated ? selectNumberedEvents : selectEventsWithBlocks),
    newestBlocks: source(areReplicated ? selectReached : selectNewestBlocks),
    storingProgress: source(areReplicated ? selectReachedThrough : selectProgress),
    orderRecords: areReplicated ? source(selectOrderRecords) : undefined,
  };
}

/** The tables of one server. */
export const LOCAL_TABLES = createTables(onThisServer, { params: {} });

/** The tables of one of several replicas. */
export const REPLICATED_TABLES = createTables(onThisServer, { params: {}, areReplicated: true });
