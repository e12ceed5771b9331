import type { Login } from '@sluice/shared/clickhouse/connection';
import { ConnectionFailure } from '../clickhouse/read-failures.ts';
import type { Store } from '../clickhouse/store.ts';
import { type Deletion, LOCAL_TABLES, type Tables, tablesOfServers } from '../clickhouse/tables.ts';
import { hiddenEvents } from '../deletions/hidden-events.ts';
import type { PolledServer } from './polled-server.ts';
import type { RecentDeletions } from './recent-deletions.ts';

/** How long texts of deletions may be in one statement, in characters: they are part of its address. */
const DELETIONS_CHARACTERS_MAX = 32_768;

/** Between the names of servers in that of a store. It is in no name of a server. */
const SEPARATOR = '+';

export interface ChosenStoreOptions {
  readonly recentDeletions: RecentDeletions;
  /** As in {@link Store.visibility}, from what is known of all servers. */
  readonly keptFrom: (workspace: string) => number | undefined;
  /** By which a server reads others. */
  readonly login: Login;
  /** Aborts when any of the servers is given up. */
  readonly givenUp: AbortSignal;
}

/**
 * Returns the store of servers that have everything together: one of each range of partitions, in the order of these. Statements
 * are sent to the first one, which reads the others.
 */
export function storeOf(servers: readonly PolledServer[], options: ChosenStoreOptions): Store {
  const [first] = servers;
  if (!first) throw new Error('there is no server');
  const names = servers.map(({ server }) => server.name);
  const elsewhere = (workspace: string) => missingDeletions(options.recentDeletions, names, workspace);
  return {
    name: names.join(SEPARATOR),
    databaseId: servers.map(({ lastState }) => lastState?.identity?.id ?? '').join(SEPARATOR),
    reader: first.reader,
    tables: servers.length === 1 ? LOCAL_TABLES : tablesOf(first, servers, options.login),
    givenUp: options.givenUp,
    visibility: {
      deletionsElsewhere: elsewhere,
      keptFrom: async (workspace) => {
        await Promise.all(servers.map((server) => server.state()));
        return options.keptFrom(workspace);
      },
      hiddenCondition: async (workspace) => {
        const states = await Promise.all(servers.map((server) => server.state()));
        const missing = elsewhere(workspace);
        if (missing.length > 0) return (tables) => hiddenEvents(tables.withDeletions(missing));
        const isDeleting = states.some(({ deleting }) => deleting === undefined || deleting.has(workspace));
        return isDeleting ? hiddenEvents : undefined;
      },
    },
  };
}

/** Returns the names of the servers of a store. */
export function serverNames(storeName: string): readonly string[] {
  return storeName.split(SEPARATOR);
}

function tablesOf({ server: first }: PolledServer, servers: readonly PolledServer[], login: Login): Tables {
  return tablesOfServers({
    ...login,
    addresses: servers.map(({ server }) => server.native),
    tls: first.nativeTls,
    database: first.database,
    serverOfPartition: servers.flatMap(({ server: { partitions } }, index) => {
      const { first: from = 0, last: to = 0 } = partitions ?? {};
      return Array.from({ length: to - from + 1 }, () => index);
    }),
  });
}

/** @throws {ConnectionFailure} when there are more than a statement may name: that is over in some seconds */
function missingDeletions(recent: RecentDeletions, names: readonly string[], workspace: string): Deletion[] {
  const missing = recent.missingAt(names, workspace);
  const characters = missing.reduce((sum, { user }) => sum + user.length + 20, 0);
  if (characters <= DELETIONS_CHARACTERS_MAX) return missing;
  throw new ConnectionFailure(`${names.join(', ')} lack ${missing.length} deletions that other servers have`);
}
