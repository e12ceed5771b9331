import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrateAccount } from '@sluice/shared/clickhouse/migrate';
import { clickHouseEnv, groupEnv, kafkaEnv } from '@sluice/shared/config';
import { describeRange } from '@sluice/shared/servers/partition-range';
import { type ServerConfig, serverEnv } from '@sluice/shared/servers/server-config';
import type { Server } from '@sluice/shared/servers/servers-file';
import type { DatabaseOwner } from '@sluice/storage/clickhouse/own-database';
import { z } from 'zod';

const APPLICATION = 'sluice-servers';

/** The environment of the commands about servers: that of a writer. */
export const serversConfig = z.object({ ...kafkaEnv, ...clickHouseEnv, ...serverEnv, ...groupEnv });

export type ServersConfig = z.output<typeof serversConfig>;

/** A server of the file, with how it is reached. */
export interface ConfiguredServer {
  readonly server: Server;
  readonly config: ServersConfig;
}

/** What the file says whose the database of a server is. */
export function ownerOf({ name, group, partitions }: Server): DatabaseOwner {
  return { server: name, group, partitions: describeRange(partitions) };
}

/** Returns the servers of a file of several. */
export function configured(servers: readonly ServerConfig<typeof serversConfig>[]): readonly ConfiguredServer[] {
  return servers.flatMap(({ server, config }) => (server ? [{ server, config }] : []));
}

/**
 * Connects to the database of a server, with the account of a writer.
 *
 * @param requestTimeoutMs how long a statement may take. Default a minute
 */
export function connectTo({ config }: ConfiguredServer, requestTimeoutMs = 60_000): ClickHouseClient {
  return createClickHouse(config, { application: APPLICATION, requestTimeoutMs, connectionsMax: 4 });
}

/**
 * Connects to a server with the account for migrations.
 *
 * @param database default: that of the server
 * @param requestTimeoutMs how long a statement may take. Default a minute
 */
export function connectForMigrations(
  { config }: ConfiguredServer,
  database = config.CLICKHOUSE_DATABASE,
  requestTimeoutMs = 60_000,
): ClickHouseClient {
  return createClickHouse(
    { ...migrateAccount(config), CLICKHOUSE_DATABASE: database },
    { application: APPLICATION, requestTimeoutMs, connectionsMax: 4 },
  );
}

/**
 * Does something on a ClickHouse server.
 *
 * @param name of the server; undefined where there is only one
 * @throws what `work` throws, with the name of the server before its message
 */
export async function atServer<Result>(name: string | undefined, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (name !== undefined && error instanceof Error) {
      error.message = `${name}: ${error.message || (error as NodeJS.ErrnoException).code}`;
    }
    throw error;
  }
}
