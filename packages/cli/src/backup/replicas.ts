import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Migration } from '@sluice/shared/clickhouse/migrate';
import { migrateReplicas, ReplicaBehind } from '@sluice/shared/clickhouse/migrate-replicas';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import { readNumber } from '@sluice/shared/clickhouse/read-number';
import { isLocalTable } from '@sluice/shared/clickhouse/replicated-tables';
import { Refused } from '@sluice/shared/config/command-line';
import { readGroups } from '@sluice/storage/clickhouse/claim-database';
import { endFilling, RESTORING, readIdentity, recordState } from '@sluice/storage/clickhouse/identity';
import { recordFence } from '@sluice/storage/clickhouse/ownership';
import { missingOf } from '../command/missing-rights.ts';
import type { BackupConfig } from './config.ts';
import type { OtherServer } from './kept-rows.ts';
import { OperationFailed } from './operation.ts';

/** How long a replica may need for what was changed at another one, in milliseconds. */
const BEHIND_MS_MAX = 60_000;

/**
 * ClickHouse's errors where a replica is behind: it cannot change a table yet, or its own statement that creates a table, which another one
 * gets, is not yet that of Keeper (a migration does not wait for itself).
 */
const BEHIND = ['CANNOT_ASSIGN_ALTER', 'METADATA_MISMATCH', 'INCOMPATIBLE_COLUMNS'];

/** How long ClickHouse waits for the parts of a table, in seconds: at first, and at most. */
const SYNC_SECONDS = { first: 60, max: 600 };

/** After how long a replica that fetches nothing is given up, in milliseconds. */
const STALLED_MS = 300_000;

/** What a replica has of a table, and what it is fetching. */
const FETCHED = `SELECT
  (SELECT sum(rows) FROM system.parts WHERE database = currentDatabase() AND table = {table:String} AND active) AS rows,
  (SELECT sum(bytes_read_compressed) FROM system.replicated_fetches WHERE database = currentDatabase() AND table = {table:String}) AS bytes,
  (SELECT toUInt32(sum(queue_size)) FROM system.replicas WHERE database = currentDatabase() AND table = {table:String}) AS waiting`;

/** Has what a database says of itself. */
const IDENTITY = 'database_identity';

/** What is moved first, in this order: while a database says that it is being filled, no writer stores, and no deletion is to be lost. */
export const MOVED_FIRST = [IDENTITY, 'user_deletions', 'pending_deletions', 'identity_deletions'];

const ANOTHER = 'another restore has begun meanwhile: let that one run to its end';

/** Of a database without replicated tables, all are 0. */
const STATE = `SELECT
  toUInt32(count()) AS tables, max(total_replicas) AS known, max(is_readonly OR is_session_expired) AS isReadOnly
FROM system.replicas WHERE database = {database:String}`;

/** What a restore needs in the database, at each replica. */
const RIGHTS = [
  ...[
    'SHOW TABLES',
    'SELECT',
    'INSERT',
    'CREATE DATABASE',
    'CREATE TABLE',
    'DROP DATABASE',
    'DROP TABLE',
    'ALTER DELETE',
  ],
  ...['ALTER COLUMN', 'ALTER INDEX', 'ALTER STATISTICS', 'ALTER PROJECTION', 'ALTER CONSTRAINT', 'ALTER TTL'],
  ...['ALTER MATERIALIZE TTL', 'ALTER SETTINGS', 'ALTER MODIFY COMMENT', 'SYSTEM SYNC REPLICA'],
];

const RIGHTS_OF_SERVER = [
  ...['parts', 'replicas', 'replicated_fetches'].map((table) => `SELECT ON system.${table}`),
  ...['', 'Replacing', 'Aggregating'].map((kind) => `TABLE ENGINE ON Replicated${kind}MergeTree`),
];

const ROWS = `SELECT sum(total_rows) AS number FROM system.tables
  WHERE database = {database:String} AND name IN (SELECT table FROM system.replicas WHERE database = {database:String})`;

/** What the database has twice while it is replaced is dropped, however large it is. */
const ANY_SIZE = { max_table_size_to_drop: '0', max_partition_size_to_drop: '0' } as const;

/** Drops a database, if it is there, and waits until it is gone. @throws ClickHouse's errors */
export async function dropDatabase(client: ClickHouseClient, database: string): Promise<void> {
  await client.command({
    query: 'DROP DATABASE IF EXISTS {database:Identifier} SYNC',
    query_params: { database },
    clickhouse_settings: ANY_SIZE,
  });
}

/** How the databases are called that a restore has beside the one that it replaces: their names end so. */
export const BESIDE = { restoring: '_restoring', replacing: '_replacing', replaced: '_replaced' } as const;

export interface SyncOptions {
  /** Of the replica, for errors. Default: `the replica`. */
  readonly name?: string;
  /** Ends the wait. Default: nothing does. */
  readonly signal?: AbortSignal;
  /** Is told how many entries of the replica's queue are left, whenever ClickHouse has waited for so long. Default: nobody is. */
  readonly onWait?: (waiting: number) => void;
  /** How long ClickHouse waits at first, in seconds. Default 60. */
  readonly seconds?: number;
  /** After how long without progress the wait ends, in milliseconds. Default: 5 minutes. */
  readonly stalledMs?: number;
}

/**
 * Waits until a replica has all parts of a table that any replica had committed before, as long as it fetches. A table that each replica has
 * for itself has them.
 *
 * @throws {Refused} when it has fetched nothing for minutes
 * @throws {OperationFailed} when `signal` aborts
 * @throws ClickHouse's errors
 */
export async function syncReplica(client: ClickHouseClient, table: string, options: SyncOptions = {}): Promise<void> {
  if (isLocalTable(table)) return;
  const { name = 'the replica', signal, onWait = () => {}, stalledMs = STALLED_MS } = options;
  let seconds = options.seconds ?? SYNC_SECONDS.first;
  let before = '';
  let progressAt = performance.now();
  while (!(await isSynced(client, table, seconds, signal))) {
    const result = await client.query({ query: FETCHED, query_params: { table }, format: 'JSONEachRow' });
    const [{ waiting, ...fetched } = { waiting: 0 }] = await result.json<{ waiting: number }>();
    onWait(waiting);
    const now = JSON.stringify(fetched);
    if (now !== before) progressAt = performance.now();
    else if (performance.now() - progressAt > stalledMs) {
      throw new Refused(
        `${name} has fetched nothing of the table ${table} for ${Math.round(stalledMs / 60_000)} minutes, and ${waiting} entries wait: ` +
          'system.replication_queue says why.',
      );
    }
    before = now;
    seconds = Math.min(2 * seconds, SYNC_SECONDS.max);
  }
}

/** Returns whether a replica has all parts of a table, false after `seconds`. @throws as {@link syncReplica} */
async function isSynced(
  client: ClickHouseClient,
  table: string,
  seconds: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  try {
    await client.command({
      query: `SYSTEM SYNC REPLICA ${table} LIGHTWEIGHT`,
      clickhouse_settings: { receive_timeout: seconds },
      ...(signal && { abort_signal: signal }),
    });
    return true;
  } catch (error) {
    if (signal?.aborted) throw new OperationFailed('it was interrupted', '');
    if ((error as { readonly type?: string }).type === 'TIMEOUT_EXCEEDED') return false;
    throw error;
  }
}

/** @throws {Error} when another restore has begun to replace the database */
async function requireNewest(client: ClickHouseClient, run: string): Promise<void> {
  if ((await readIdentity(client))?.detail !== run) throw new Error(ANOTHER);
}

/** One of the replicas of a database. */
export interface RestoredReplica {
  readonly name: string;
  readonly config: BackupConfig;
  /** Connects to a database of it that exists. */
  readonly connect: (database: string) => ClickHouseClient;
}

interface Restored {
  /** Those of the backup. */
  readonly migrations: readonly Migration[];
  /** The consumer groups of the writers, and of those of the databases that are replaced. */
  readonly groups: readonly string[];
  /** Is told what is done, as a sentence. Default: nobody is. */
  readonly onProgress?: (line: string) => void;
}

/** A replaced database is gone, and the one in its place does not have everything yet. */
export class HalfReplaced extends Error {
  override readonly name = 'HalfReplaced';
}

async function hasRights(client: ClickHouseClient, rights: readonly string[]): Promise<boolean> {
  // It takes no FORMAT.
  const { stream } = await client.exec({
    query: `CHECK GRANT ${rights.join(', ')}`,
    clickhouse_settings: { default_format: 'TSV' } as never,
  });
  return (await text(stream)).trim() === '1';
}

/**
 * Repeats work until no replica has yet to carry out what was changed at another one.
 *
 * @param options.pauseMs between two attempts. Default 500
 * @throws what the work throws, also when a replica is behind for a minute
 */
export async function untilLevel(work: () => Promise<unknown>, { pauseMs = 500 } = {}): Promise<void> {
  const endsAt = performance.now() + BEHIND_MS_MAX;
  for (;;) {
    try {
      await work();
      return;
    } catch (error) {
      const { type = '' } = error as { readonly type?: string };
      const isBehind = error instanceof ReplicaBehind || BEHIND.includes(type);
      if (!isBehind || performance.now() > endsAt) throw error;
      await delay(pauseMs);
    }
  }
}

/** Replicas whose database a restore replaces. The first one gets the rows, and ClickHouse copies them to the others. */
export class RestoredReplicas {
  readonly #replicas: readonly RestoredReplica[];
  readonly #database: string;
  readonly #clients = new Map<string, ClickHouseClient>();

  constructor(replicas: readonly RestoredReplica[], database: string) {
    this.#replicas = replicas;
    this.#database = database;
  }

  /** Returns connections to all but the first one. @param database default: one that always exists */
  others(database?: string): readonly ClickHouseClient[] {
    return this.#replicas.slice(1).map((replica) => this.#clientOf(replica, database));
  }

  /**
   * Makes sure that all replicas answer, that there is no other one, and that each can carry out a restore.
   *
   * @throws {Refused} with all that is in the way
   */
  async requireAll(): Promise<void> {
    const reasons = await Promise.all(
      this.#replicas.map((replica) =>
        this.#obstacles(replica).catch(({ message, code }: NodeJS.ErrnoException) => [
          `${replica.name} does not answer: ${message || code}.`,
        ]),
      ),
    );
    if (reasons.flat().length > 0) throw new Refused(reasons.flat().join(' '));
  }

  /** Returns what keeps a replica from being replaced, each in a sentence. @throws ClickHouse's errors */
  async #obstacles(replica: RestoredReplica): Promise<readonly string[]> {
    const [keeper, rights, others] = await Promise.all([
      this.#obstaclesOfKeeper(replica),
      this.#missingRights(replica),
      replica === this.#replicas[0] ? [] : this.#otherRestores(replica),
    ]);
    return [...keeper, ...rights, ...others];
  }

  /** What is missing there would be found only when the database is gone. */
  async #missingRights(replica: RestoredReplica): Promise<readonly string[]> {
    const client = this.#clientOf(replica);
    // The configuration makes sure that the name of the database is a plain identifier: CHECK GRANT takes no parameters.
    const rights = [...RIGHTS.map((right) => `${right} ON ${this.#database}.*`), ...RIGHTS_OF_SERVER];
    const missing = await missingOf((some) => hasRights(client, some), rights);
    return missing.length === 0
      ? []
      : [`${replica.name}: the account lacks ${missing.join(', ')}: docs/operate/backup.md lists what it needs.`];
  }

  /** Another restore has its own idea of what is in the database. */
  async #otherRestores(replica: RestoredReplica): Promise<readonly string[]> {
    const { name } = replica;
    const result = await this.#clientOf(replica).query({
      query: 'SELECT name FROM system.databases WHERE name IN {names:Array(String)} ORDER BY name',
      query_params: { names: Object.values(BESIDE).map((end) => `${this.#database}${end}`) },
      format: 'JSONEachRow',
    });
    return (await result.json<{ name: string }>()).map(
      (found) =>
        `${name} has the database ${found.name} of another restore, which may be running: wait for its end, or run it again with --server ${name}.`,
    );
  }

  async #obstaclesOfKeeper(replica: RestoredReplica): Promise<readonly string[]> {
    const { name } = replica;
    const query_params = { database: this.#database };
    const result = await this.#clientOf(replica).query({ query: STATE, query_params, format: 'JSONEachRow' });
    const [state] = await result.json<{ tables: number; known: number; isReadOnly: number }>();
    if (!state || state.tables === 0) return [];
    if (state.isReadOnly !== 0 || state.known === 0) {
      // Its names would stay in Keeper, and the others would be dropped all the same.
      return [
        `${name} is read-only: it has no session of Keeper, or Keeper has lost its tables. Wait until it has one, or run SYSTEM RESTORE REPLICA there.`,
      ];
    }
    if (state.known <= this.#replicas.length) return [];
    return [
      `${name}: Keeper knows ${state.known} replicas, and CLICKHOUSE_SERVERS_FILE names ${this.#replicas.length}. Name all of them, or ` +
        'drop those that are lost: SYSTEM DROP REPLICA.',
    ];
  }

  /** Returns the consumer groups of the databases that are replaced; of mirrors, each has its own. @throws ClickHouse's errors */
  async groups(): Promise<readonly string[]> {
    const found = await Promise.all(
      this.#replicas.map(async (replica) =>
        (await this.#has(replica, 'writer_groups')) ? await readGroups(this.#clientOf(replica, this.#database)) : [],
      ),
    );
    return [...new Set(found.flat())];
  }

  /** Returns all but the first one that have the deletions of users. @throws ClickHouse's errors */
  async othersWithDeletions(): Promise<readonly Pick<OtherServer, 'name' | 'client'>[]> {
    const found = await Promise.all(
      this.#replicas.slice(1).map(async (replica) => {
        const has = await this.#has(replica, 'user_deletions');
        return has ? [{ name: replica.name, client: this.#clientOf(replica, this.#database) }] : [];
      }),
    );
    return found.flat();
  }

  /** Brings a table of the first one level with the others, where it is a replicated one. @throws as {@link syncReplica} */
  async syncFirst(table: string, options: SyncOptions): Promise<void> {
    const [first] = this.#replicas;
    const isReplicated =
      'SELECT count() AS number FROM system.replicas WHERE database = {database:String} AND table = {table:String}';
    const params = { database: this.#database, table };
    if (!first || (await readNumber(this.#clientOf(first), isReplicated, params)) === 0) return;
    await syncReplica(this.#clientOf(first, this.#database), table, options);
  }

  async #has(replica: RestoredReplica, table: string): Promise<boolean> {
    const exists =
      'SELECT count() AS number FROM system.tables WHERE database = {database:String} AND name = {table:String}';
    return (await readNumber(this.#clientOf(replica), exists, { database: this.#database, table })) > 0;
  }

  /** Connects once to each database. @param database default: one that always exists */
  #clientOf(replica: RestoredReplica, database = 'default'): ClickHouseClient {
    const key = `${replica.name}/${database}`;
    const client = this.#clients.get(key) ?? replica.connect(database);
    this.#clients.set(key, client);
    return client;
  }

  /**
   * Replaces the database at each replica by one of the same tables, and moves the rows of a database of the first one there.
   *
   * @param scratch a database of the first one, which has these migrations, and plain tables
   * @param requireStopped makes sure that no writer runs
   * @returns the names of the replicas that have not said yet that the database is complete: they will
   * @throws {Refused} when a writer runs; then nothing is changed
   * @throws {HalfReplaced} when something fails after that; the call may be repeated
   */
  async replace(
    scratch: ClickHouseClient,
    restored: Restored,
    requireStopped: () => Promise<void>,
  ): Promise<readonly string[]> {
    await this.requireAll();
    await requireStopped();
    try {
      // At once: a writer that starts meanwhile fills one that is empty from another one that is not.
      const drops = await Promise.allSettled(
        this.#replicas.map((replica) => dropDatabase(this.#clientOf(replica), this.#database)),
      );
      for (const drop of drops) if (drop.status === 'rejected') throw drop.reason;
      restored.onProgress?.('The database is dropped, and is filled with what was restored.');
      await this.#create(restored.migrations);
      await this.#fill(scratch, restored, requireStopped);
    } catch (error) {
      const { message, code } = error as NodeJS.ErrnoException;
      throw new HalfReplaced(message || code || '', { cause: error });
    }
    // It is restored: writers may store by now, and nothing may drop it.
    const isLevel = await Promise.all(
      this.others(this.#database).map((client) =>
        syncReplica(client, IDENTITY).then(
          () => true,
          () => false,
        ),
      ),
    );
    return this.#replicas.slice(1).flatMap(({ name }, place) => (isLevel[place] ? [] : [name]));
  }

  async #create(migrations: readonly Migration[]): Promise<void> {
    const configs = this.#replicas.map(({ config }) => config);
    await untilLevel(() => migrateReplicas(configs, createLogger('sluice-restore', 'error'), migrations));
    await this.requireAll();
    for (const replica of this.#replicas) {
      if ((await readNumber(this.#clientOf(replica), ROWS, { database: this.#database })) === 0) continue;
      throw new Error(
        `${replica.name} has got rows of before: stop the writers, and drop replicas that are lost with SYSTEM DROP REPLICA`,
      );
    }
  }

  async #fill(
    scratch: ClickHouseClient,
    { migrations, groups, onProgress = () => {} }: Restored,
    requireStopped: () => Promise<void>,
  ): Promise<void> {
    const [first] = this.#replicas;
    const own = first && this.#clientOf(first, this.#database);
    const identity = await readIdentity(scratch);
    if (!own || !identity) throw new Error('there is no replica, or the backup does not say whose it is');
    const run = `${RESTORING} ${randomUUID()}`;
    await recordState(scratch, 'filling', run);
    const created = migrations.map(createdTable).filter((table) => table !== undefined && !isLocalTable(table));
    const tables = [
      ...MOVED_FIRST.filter((table) => created.includes(table)),
      ...created.filter((table) => !MOVED_FIRST.includes(table as string)),
    ];
    for (const table of tables as string[]) {
      if (table !== IDENTITY) await requireNewest(own, run);
      await this.#move(scratch, table);
      for (const [place, client] of this.others(this.#database).entries()) {
        const name = this.#replicas[place + 1]?.name ?? '';
        const onWait = (waiting: number) =>
          onProgress(`${table}: ${name} fetches, and ${waiting} entries of its queue are left.`);
        await syncReplica(client, table, { name, onWait });
      }
      if (table !== IDENTITY) continue;
      // A writer that took over before it could see this is fenced, or is still a member of its group.
      for (const client of [own, ...this.others(this.#database)])
        for (const group of groups) await recordFence(client, group);
      await requireStopped();
    }
    await endFilling(own, run, identity);
    if ((await readIdentity(own))?.state === 'filling') throw new Error(ANOTHER);
  }

  /** Moves the rows of a table, each time with the same result. */
  async #move(client: ClickHouseClient, table: string): Promise<void> {
    const result = await client.query({
      query: `SELECT DISTINCT partition_id AS id FROM system.parts
        WHERE database = currentDatabase() AND table = {table:String} AND active ORDER BY id`,
      query_params: { table },
      format: 'JSONEachRow',
    });
    for (const { id } of await result.json<{ id: string }>())
      await client.command({
        query: `ALTER TABLE {to:Identifier}.{table:Identifier} REPLACE PARTITION ID {id:String} FROM ${table}`,
        query_params: { to: this.#database, table, id },
        // The others are waited for afterwards, however long they take.
        clickhouse_settings: { alter_sync: '1' },
      });
  }
}
