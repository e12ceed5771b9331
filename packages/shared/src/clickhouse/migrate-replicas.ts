import type { Logger } from '../base/log.ts';
import type { ClickHouseConfig } from '../config/config.ts';
import { type ClickHouseClient, createClickHouse } from './client.ts';
import {
  type AppliedMigrations,
  CREATE_RECORDS,
  createDatabase,
  type Migration,
  migrate,
  migrateAccount,
  readApplied,
  readMigrations,
  record,
  recordedOrNone,
  rejectWrong,
} from './migrate.ts';
import { requireUsableServer } from './one-server.ts';
import { LOCAL_TABLES, placeOf, replicatedSql } from './replicated-tables.ts';

/** A replica that has not carried out yet what was changed at another one. */
export class ReplicaBehind extends Error {
  override readonly name = 'ReplicaBehind';
}

interface Replica {
  readonly config: ClickHouseConfig;
  readonly client: ClickHouseClient;
  readonly recorded: AppliedMigrations | undefined;
}

/**
 * Brings all replicas of a database to the newest schema. The one that has the most migrations applies those that are missing, as
 * `migrate` does. Each other one gets the tables that the first one has, as they are there now, and its records: the first
 * migrations would create them without the columns that Keeper knows by now. Several services may call it at the same time.
 *
 * @param configs one for each replica, in the order of the file
 * @returns the numbers of the migrations that this call applied
 * @throws {ReplicaBehind} when a replica needs more time; the call may be repeated
 * @throws as `migrate` does, and ClickHouse's errors where a replica does not answer
 */
export async function migrateReplicas(
  configs: readonly ClickHouseConfig[],
  logger: Logger,
  migrations?: readonly Migration[],
): Promise<number[]> {
  const wanted = migrations ?? (await readMigrations());
  await using clients = new AsyncDisposableStack();
  const replicas = await Promise.all(
    configs.map(async (config): Promise<Replica> => {
      const account = migrateAccount(config);
      const options = { application: 'sluice-migrate', requestTimeoutMs: 60_000, connectionsMax: 1 };
      const client = clients.adopt(createClickHouse(account, options), (one) => one.close());
      return { config: account, client, recorded: await recordedOrNone(client) };
    }),
  );
  const most = Math.max(...replicas.map(({ recorded }) => recorded?.size ?? 0));
  const source = replicas.find(({ recorded }) => (recorded?.size ?? 0) === most);
  if (!source) return [];
  const applied = await migrate(source.config, logger, wanted);
  const ofSource = await readApplied(source.client);
  for (const replica of replicas) if (replica !== source) await level(replica, source, { wanted, ofSource, logger });
  return applied;
}

interface Levelling {
  readonly wanted: readonly Migration[];
  readonly ofSource: AppliedMigrations;
  readonly logger: Logger;
}

async function level(
  { config, client, recorded }: Replica,
  source: Replica,
  { wanted, ofSource, logger }: Levelling,
): Promise<void> {
  if (recorded) {
    // Of the others nothing is lost: another call may be creating them at this moment, and ClickHouse fills those that are there.
    const known = wanted.filter(({ number }) => recorded.has(number));
    await rejectWrong(known, recorded, client, config.CLICKHOUSE_DATABASE);
  } else await createDatabase(config);
  await requireUsableServer(config);
  const missing = [...ofSource].filter(([number]) => !recorded?.has(number));
  if (missing.length === 0) return;
  await client.command({ query: CREATE_RECORDS });
  const here = new Set((await readTables(client)).map(({ name }) => name));
  for (const { name, statement } of await readTables(source.client))
    if (!here.has(name))
      await client.command({ query: statement.replace('CREATE TABLE ', 'CREATE TABLE IF NOT EXISTS ') });
  // A table that was created here just now is as it has to be.
  for (const { number, sql } of wanted)
    if (!recorded?.has(number) && placeOf(sql) === 'each host') await client.command({ query: replicatedSql(sql) });
  const [columns, wantedColumns] = await Promise.all([readColumns(client), readColumns(source.client)]);
  if (columns !== wantedColumns) throw new ReplicaBehind('a replica does not have the columns of the others yet');
  await record(
    client,
    missing.map(([number, { name, checksum }]) => ({ number, name, checksum })),
    logger,
  );
}

/** What replicas have in common, and what each has for itself. An operator may have put other tables into the database of one of them. */
const OWN_TABLES = `database = currentDatabase() AND (startsWith(engine, 'Replicated') OR name IN {local:Array(String)})`;

/** Returns the tables of a database, with the statements that create them as they are now. */
async function readTables(client: ClickHouseClient): Promise<readonly { name: string; statement: string }[]> {
  const result = await client.query({
    query: `SELECT name, create_table_query AS statement FROM system.tables WHERE ${OWN_TABLES} ORDER BY name`,
    query_params: { local: LOCAL_TABLES },
    format: 'JSONEachRow',
  });
  return await result.json();
}

async function readColumns(client: ClickHouseClient): Promise<string> {
  const result = await client.query({
    query: `SELECT toString(groupArray((table, name, type))) AS columns
      FROM (
        SELECT table, name, type FROM system.columns
        WHERE database = currentDatabase() AND table IN (SELECT name FROM system.tables WHERE ${OWN_TABLES})
        ORDER BY table, name
      )`,
    query_params: { local: LOCAL_TABLES },
    format: 'JSONEachRow',
  });
  const [row] = await result.json<{ columns: string }>();
  return row?.columns ?? '';
}
