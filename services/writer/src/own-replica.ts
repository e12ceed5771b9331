import type { ClickHouseSettings } from '@clickhouse/client';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { pinnedSettings, replicatedSettings } from '@sluice/shared/clickhouse/settings';
import type { ServerConfig } from '@sluice/shared/servers/server-config';
import { chooseReplica } from '@sluice/storage/clickhouse/replicas';
import type { configSchema, WriterConfig } from './config.ts';

/** How long a replica may take to say whether it can be stored at, in milliseconds. */
const CHOICE_MS = 5_000;

/** Where a writer stores. */
export interface OwnPlace extends Pick<ServerConfig<typeof configSchema>, 'config' | 'server'> {
  /** The configurations of the other replicas; undefined where the server has its rows alone. */
  readonly others: readonly WriterConfig[] | undefined;
  /** The settings of everything that is sent to it. */
  readonly settings: ClickHouseSettings;
}

/** Returns the server that a writer stores at: of replicas the one that was chosen, unless it is read-only and another one is not. */
export async function findOwnPlace({ config, server, replicas }: ServerConfig<typeof configSchema>): Promise<OwnPlace> {
  if (!replicas || !server) return { config, server, others: undefined, settings: pinnedSettings };
  const configs = replicas.map(({ url }) => ({ ...config, CLICKHOUSE_URL: url }));
  const clients = configs.map((one) =>
    createClickHouse(one, { application: 'sluice-writer', requestTimeoutMs: CHOICE_MS, connectionsMax: 1 }),
  );
  const own = await chooseReplica(clients, replicas.indexOf(server));
  await Promise.all(clients.map((client) => client.close()));
  return {
    config: configs[own] ?? config,
    server: replicas[own],
    others: configs.filter((_, place) => place !== own),
    settings: { ...pinnedSettings, ...replicatedSettings(replicas.length, config.STATEMENT_TIMEOUT_MS) },
  };
}
