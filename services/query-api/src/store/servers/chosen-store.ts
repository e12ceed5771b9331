import type { Login } from '@sluice/shared/clickhouse/connection';
import { hidingWith, mergedAmong } from '../deletions/deleted-with-users.ts';
import { canBeNamed } from '../deletions/hidden-events.ts';
import { FreshPoll } from '../fresh-poll.ts';
import { DeletionsUnknown } from '../read-failures.ts';
import type { Store } from '../stores.ts';
import { type Deletion, LOCAL_TABLES, REPLICATED_TABLES, type Tables, tablesOfServers } from '../tables.ts';
import type { PolledServer } from './polled-server.ts';
import type { RecentDeletions } from './recent-deletions.ts';

/**
 * By how much the clocks of brokers, writers and ClickHouse servers may differ, in milliseconds: each of two by the two seconds
 * that ingest-api allows by default (CLOCK_SKEW_MS_MAX), and a second more.
 */
export const CLOCKS_MS = 5_000;

/** For how long it counts as known who is deleted with deleted users, in milliseconds: a deletion has to be in force within a second. */
const FRESH_MS = 500;

/** Between the names of servers in that of a store. It is in no name of a server. */
const SEPARATOR = '+';

export interface ChosenStoreOptions {
  readonly recentDeletions: RecentDeletions;
  /** As in {@link Store.visibility}, from what is known of all servers. */
  readonly keptFrom: (workspace: string) => number | undefined;
  readonly fastSets: Store['visibility']['fastSets'];
  readonly identities: Store['visibility']['identities'];
  /** Reads who is deleted with the deleted users of a workspace, in a store; `elsewhere` are deletions that it lacks. */
  readonly readDeletedWithUsers: (
    store: Store,
    workspace: string,
    elsewhere: readonly Deletion[],
  ) => Promise<readonly Deletion[]>;
  /** By which a server reads others. */
  readonly login: Login;
  /** Aborts when any of the servers is given up. */
  readonly givenUp: AbortSignal;
  /** Whether the servers are replicas. Default: false. */
  readonly areReplicas?: boolean | undefined;
}

/**
 * Returns the store of servers that have everything together: one of each range of partitions, in the order of these. Statements
 * are sent to the first one, which reads the others.
 */
export function storeOf(servers: readonly PolledServer[], options: ChosenStoreOptions): Store {
  const [first] = servers;
  if (!first) throw new Error('there is no server');
  const names = servers.map(({ server }) => server.name);
  const elsewhere = (workspace: string) => missingDeletions(options.recentDeletions, servers, workspace);
  const polls = new Map<string, FreshPoll<readonly Deletion[]>>();
  const withUsers = async (workspace: string) => {
    const query = () => options.readDeletedWithUsers(store, workspace, elsewhere(workspace));
    const poll = polls.get(workspace) ?? new FreshPoll(query, { freshMs: FRESH_MS });
    polls.set(workspace, poll);
    return await poll.value();
  };
  const isDeleting = async (workspace: string) => {
    const states = await Promise.all(servers.map((server) => server.state()));
    return (
      elsewhere(workspace).length > 0 ||
      states.some(({ deleting }) => deleting === undefined || deleting.has(workspace))
    );
  };
  const ofOne = options.areReplicas ? REPLICATED_TABLES : LOCAL_TABLES;
  const store: Store = {
    name: names.join(SEPARATOR),
    databaseId: servers.map(({ lastState }) => lastState?.identity?.id ?? '').join(SEPARATOR),
    reader: first.reader,
    tables: servers.length > 1 ? tablesOf(first, servers, options) : ofOne,
    givenUp: options.givenUp,
    visibility: {
      ...(options.fastSets && { fastSets: options.fastSets }),
      ...(options.identities && { identities: options.identities }),
      deletionsElsewhere: elsewhere,
      keptFrom: async (workspace) => {
        await Promise.all(servers.map((server) => server.state()));
        return options.keptFrom(workspace);
      },
      hiddenCondition: async (workspace) => {
        if (!(await isDeleting(workspace))) return undefined;
        const isLinked = (await options.identities?.(workspace))?.areLinked ?? false;
        const hidden = hidingWith(isLinked ? await withUsers(workspace) : []);
        const missing = elsewhere(workspace);
        return missing.length === 0 ? hidden : (tables) => hidden(tables.withDeletions(missing));
      },
      mergedDeletions: async (workspace) => {
        if (!(await isDeleting(workspace))) return [];
        const isMerged = (await options.identities?.(workspace))?.areMerged ?? false;
        return isMerged ? mergedAmong(await withUsers(workspace)) : [];
      },
    },
  };
  return store;
}

/** Returns the names of the servers of a store. */
export function serverNames(storeName: string): readonly string[] {
  return storeName.split(SEPARATOR);
}

function tablesOf(
  { server: first }: PolledServer,
  servers: readonly PolledServer[],
  { login, areReplicas }: ChosenStoreOptions,
): Tables {
  const ranges = {
    ...login,
    addresses: servers.map(({ server }) => server.native),
    tls: first.nativeTls,
    database: first.database,
    serverOfPartition: servers.flatMap(({ server: { partitions } }, index) => {
      const { first: from = 0, last: to = 0 } = partitions ?? {};
      return Array.from({ length: to - from + 1 }, () => index);
    }),
  };
  return tablesOfServers(ranges, areReplicas);
}

/** @throws {DeletionsUnknown} when there are more than a statement may name, or may be listed: that is over in some seconds */
function missingDeletions(recent: RecentDeletions, servers: readonly PolledServer[], workspace: string): Deletion[] {
  const names = servers.map(({ server }) => server.name);
  const isBehind = ({ server, behindMs }: PolledServer) =>
    performance.now() - behindMs - CLOCKS_MS < recent.unlistedUntil(server.name, workspace);
  const behind = servers.filter(isBehind).map(({ server }) => server.name);
  if (behind.length > 0) throw new DeletionsUnknown(`${behind.join(', ')} may lack deletions that other servers have`);
  const missing = recent.missingAt(names, workspace);
  if (canBeNamed(missing)) return missing;
  throw new DeletionsUnknown(`${names.join(', ')} lack ${missing.length} deletions that other servers have`);
}
