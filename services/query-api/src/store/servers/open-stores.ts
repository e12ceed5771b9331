import type { Logger } from '@sluice/shared/base/log';
import type { Login } from '@sluice/shared/clickhouse/connection';
import { FollowedFile } from '@sluice/shared/config/followed-file';
import { distinctRanges, endErrors } from '@sluice/shared/servers/partition-range';
import {
  parseServersFile,
  readingErrors,
  type Server,
  type ServerDefaults,
  ServersFileError,
} from '@sluice/shared/servers/servers-file';
import type { Registry } from 'prom-client';
import type { QueryConfig } from '../../config.ts';
import type { ClickHouseReader } from '../clickhouse-reader.ts';
import { readDeletedWithUsers } from '../deletions/deleted-with-users.ts';
import { PendingDeletions } from '../deletions/pending-deletions.ts';
import { EventRetention } from '../expiry/event-retention.ts';
import { KnownFastProperties } from '../fast/known-fast-properties.ts';
import { LinkedWorkspaces } from '../links/linked-workspaces.ts';
import type { QueryRunner } from '../query-runner.ts';
import { OneStore, RequestStore, type StreamStores } from '../stores.ts';
import { LOCAL_TABLES } from '../tables.ts';
import type { PolledServer } from './polled-server.ts';
import { recentMs } from './recent-deletions.ts';
import { declareServerMetrics, GivenUpServers } from './server-metrics.ts';
import { ServerPool } from './server-pool.ts';
import { asServerState, type ServerState, stateQuery } from './server-state.ts';

/** Several servers, named by a file that is followed. */
export interface ServersFile {
  readonly path: string;
  readonly defaults: ServerDefaults;
  /** Connects to a server. */
  readonly connect: (server: Server) => ClickHouseReader;
  /** By which a server reads others. */
  readonly login: Login;
}

/** What query-api reads: the server of CLICKHOUSE_URL, or those of CLICKHOUSE_SERVERS_FILE. */
export type Source = { readonly reader: ClickHouseReader } | ServersFile;

/** The stores of a source, with what keeps them up to date. */
export interface OpenStores {
  readonly stores: StreamStores;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Returns why nothing can be read, as phrases; empty while something can, or where only a query would show it. */
  missing(): Promise<string[]>;
  /** Returns the servers that can be read now, however far behind they are. */
  servers(): Promise<readonly Pick<Server, 'name' | 'url' | 'database'>[]>;
}

export interface OpenStoresOptions {
  readonly config: QueryConfig;
  /** Runs the polls; it may read the stores. */
  readonly queryRunner: Pick<QueryRunner, 'all'>;
  readonly registry: Registry;
  readonly logger: Logger;
}

export function openStores(source: Source, options: OpenStoresOptions): OpenStores {
  return 'reader' in source ? openOne(source.reader, options) : openServers(source, options);
}

function openOne(reader: ClickHouseReader, { config, queryRunner }: OpenStoresOptions): OpenStores {
  const { identities } = new LinkedWorkspaces(queryRunner);
  const pendingDeletions = new PendingDeletions(queryRunner, undefined, identities);
  const eventRetention = new EventRetention(queryRunner);
  const { hiddenCondition, mergedDeletions } = pendingDeletions;
  const { fastSets } = new KnownFastProperties(queryRunner);
  const visibility = { hiddenCondition, mergedDeletions, keptFrom: eventRetention.keptFrom, fastSets, identities };
  return {
    stores: new OneStore({ name: '', reader, tables: LOCAL_TABLES, visibility }),
    async start() {
      pendingDeletions.start();
      eventRetention.start();
    },
    async stop() {
      await pendingDeletions.stop();
      await eventRetention.stop();
    },
    missing: async () => [],
    servers: async () => [{ name: '', url: config.CLICKHOUSE_URL, database: config.CLICKHOUSE_DATABASE }],
  };
}

function openServers(
  { path, defaults, connect, login }: ServersFile,
  { config, queryRunner, registry, logger }: OpenStoresOptions,
): OpenStores {
  const { areReplicas = false } = defaults;
  const poll = async ({ server: { name }, reader }: PolledServer, signal: AbortSignal): Promise<ServerState> => {
    const store = new RequestStore(new OneStore({ name, reader, tables: LOCAL_TABLES, visibility: NOT_ASKED }));
    const statement = () => stateQuery(recentMs(config.READ_STALE_MS_MAX), pool.migrations, areReplicas);
    const query = { kind: 'server_state', urgent: true, workspace: '', store, signal, statement } as const;
    const [row] = await queryRunner.all(query);
    if (!row) throw new Error('a poll of a server has returned no row');
    return asServerState(row);
  };
  const givenUp = new GivenUpServers(registry);
  const onGivenUp = (name: string) => givenUp.note(name);
  const { fastSets } = new KnownFastProperties(queryRunner);
  const { identities } = new LinkedWorkspaces(queryRunner);
  const pool = new ServerPool({
    config,
    firstGroup: defaults.group,
    login,
    connect,
    poll,
    logger,
    onGivenUp,
    areReplicas,
    fastSets,
    identities,
    readDeletedWithUsers(store, workspace, elsewhere) {
      const context = { store: new RequestStore(new OneStore(store)) };
      return readDeletedWithUsers(queryRunner, workspace, context, elsewhere);
    },
  });
  const file = new FollowedFile({
    path,
    parse(text) {
      const servers = parseServersFile(text, defaults);
      const errors = [
        ...readingErrors(servers),
        ...loginErrors(servers, config),
        // What the servers that are read now say: by another number, none of the file would be read.
        ...(pool.partitionCount === undefined ? [] : endErrors(serving(servers), pool.partitionCount)),
      ];
      if (errors.length > 0) throw new ServersFileError(errors);
      return servers;
    },
    onContent(servers) {
      logger.info({ path, servers: servers.map(({ name }) => name) }, 'ClickHouse servers loaded');
      givenUp.expect(serving(servers).map(({ name }) => name));
      pool.setServers(servers);
    },
    onInvalid: (reason) =>
      logger.error({ path, reason }, 'the file of servers cannot be used; the last valid one stays in force'),
  });
  declareServerMetrics(
    registry,
    () => pool.look(),
    () => file.state,
  );
  return {
    stores: pool,
    async start() {
      await pool.start();
      await file.start();
    },
    async stop() {
      await file.stop();
      await pool.stop();
    },
    missing: () => pool.missing(),
    servers: () => pool.usable(),
  };
}

/** A poll is of no workspace, so nothing of one is hidden. */
const NOT_ASKED = {
  hiddenCondition: async () => undefined,
  keptFrom: async () => undefined,
};

function serving(servers: readonly Server[]): readonly Server[] {
  return servers.filter(({ serves }) => serves);
}

/** A server logs in to others with a password alone. */
function loginErrors(servers: readonly Server[], config: QueryConfig): string[] {
  const ranges = distinctRanges(serving(servers));
  if (ranges.length === 1 || config.CLICKHOUSE_CERT_FILE === undefined) return [];
  return ['servers: where they have ranges, query-api needs a password in place of CLICKHOUSE_CERT_FILE'];
}
