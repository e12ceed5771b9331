import type { LocalClickHouse, LocalClickHouseOptions } from '@sluice/local-stack/clickhouse';
import { type LocalKeeper, startKeeper } from '@sluice/local-stack/keeper';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { ownClickHouse } from './engines.ts';
import { type RangedServer, startRangedServer } from './ranged-server.ts';

/** ClickHouse servers whose replicated tables copy their rows to one another, and what they agree by. */
export interface Replicas<Name extends string, Server = LocalClickHouse> extends AsyncDisposable {
  readonly keeper: LocalKeeper;
  readonly servers: Readonly<Record<Name, Server>>;
}

/** Starts replicas of one shard. `await using` ends them, and removes their data. */
export async function startReplicas<Name extends string>(
  names: readonly Name[],
  options: Pick<LocalClickHouseOptions, 'backupDir' | 'usersFiles'> = {},
): Promise<Replicas<Name>> {
  return await startAll(names, (replica, configFiles) =>
    ownClickHouse({ ...options, configFiles, replica: { ...replica, shard: '1' } }),
  );
}

/** Starts replicas of several shards, which read each other. `await using` ends them, and removes their data. @param shards that of each */
export async function startShards<Name extends string>(
  shards: Readonly<Record<Name, string>>,
): Promise<Replicas<Name, RangedServer>> {
  return await startAll(Object.keys(shards) as Name[], (replica, configFiles) =>
    startRangedServer({ configFiles, replica: { ...replica, shard: shards[replica.name] } }),
  );
}

async function startAll<Name extends string, Server extends AsyncDisposable>(
  names: readonly Name[],
  start: (
    replica: { readonly keeperPort: number; readonly name: Name },
    configFiles: Readonly<Record<string, string>>,
  ) => Promise<Server>,
): Promise<Replicas<Name, Server>> {
  await using started = new AsyncDisposableStack();
  const folder = started.use(await makeTempDir());
  const keeper = await startKeeper({ dataDir: folder.path });
  started.defer(() => keeper.kill9());
  const servers = await Promise.all(
    names.map(async (name) => {
      // As hosts are known by names of their own in their responses.
      const configFiles = { 'name.xml': `<clickhouse><display_name>${name}</display_name></clickhouse>` };
      return [name, started.use(await start({ keeperPort: keeper.port, name }, configFiles))] as const;
    }),
  );
  const kept = started.move();
  return {
    keeper,
    servers: Object.fromEntries(servers) as unknown as Record<Name, Server>,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
