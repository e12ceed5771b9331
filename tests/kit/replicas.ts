import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import { type LocalKeeper, startKeeper } from '@sluice/local-stack/keeper';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { ownClickHouse } from './engines.ts';

/** ClickHouse servers whose replicated tables copy their rows to one another, and what they agree by. */
export interface Replicas<Name extends string> extends AsyncDisposable {
  readonly keeper: LocalKeeper;
  readonly servers: Readonly<Record<Name, LocalClickHouse>>;
}

/** Starts replicas of one shard. `await using` ends them, and removes their data. */
export async function startReplicas<Name extends string>(names: readonly Name[]): Promise<Replicas<Name>> {
  await using started = new AsyncDisposableStack();
  const folder = started.use(await makeTempDir());
  const keeper = await startKeeper({ dataDir: folder.path });
  started.defer(() => keeper.kill9());
  const servers = await Promise.all(
    names.map(async (name) => {
      const replica = { keeperPort: keeper.port, shard: '1', name };
      // As hosts are known by names of their own in their responses.
      const configFiles = { 'name.xml': `<clickhouse><display_name>${name}</display_name></clickhouse>` };
      return [name, started.use(await ownClickHouse({ replica, configFiles }))] as const;
    }),
  );
  const kept = started.move();
  return {
    keeper,
    servers: Object.fromEntries(servers) as unknown as Record<Name, LocalClickHouse>,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
