import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { isMigrated, readMigrations } from '@sluice/shared/clickhouse/migrate';
import { readNumber } from '@sluice/shared/clickhouse/read-number';
import { Refused } from '@sluice/shared/config/command-line';
import { refuseOtherGroups } from '@sluice/storage/clickhouse/claim-database';
import { fillingCommand, readIdentity } from '@sluice/storage/clickhouse/identity';
import type { BackupLocation } from './backup-location.ts';
import { finishBackup, readNewestBackup, recordBackup } from './manifest.ts';
import { carryOut } from './operation.ts';
import { backupOf, PARTS, tablesOf } from './parts.ts';
import { type SyncOptions, syncReplica } from './replicas.ts';

/** How far a backup is: all of its parts together. */
export interface BackupProgress {
  readonly bytesWritten: number;
  /** How many there will be, about. */
  readonly bytesExpected: number;
}

export interface BackupSummary {
  readonly files: number;
  readonly bytes: number;
}

export interface RunBackupOptions {
  readonly client: ClickHouseClient;
  /** Whether it is that of one of several replicas. Default: the server has its rows alone. */
  readonly isReplica?: boolean;
  readonly groupId: string;
  readonly location: BackupLocation;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: BackupProgress) => void;
  /** Is told how many entries are left in the queue of a replica that does not have what others have yet. */
  readonly onWait: (waiting: number) => void;
}

const NEWEST_MIGRATION = 'SELECT max(number) AS number FROM schema_migrations';

const UNFINISHED_MIGRATIONS = `SELECT count() AS number FROM system.mutations
  WHERE database = currentDatabase() AND NOT is_done AND command LIKE '%MATERIALIZE%'`;

const HALF_GROWN_TOPICS =
  'SELECT count() AS number FROM (SELECT topic FROM topic_partitions GROUP BY topic HAVING uniqExact(partitions) > 1)';

const SIZE = `SELECT sum(bytes_on_disk) AS number FROM system.parts
  WHERE database = currentDatabase() AND active AND table IN {tables:Array(String)}`;

/**
 * Makes a backup of the database while writers store. It is complete only when this resolves.
 *
 * @throws {Refused} before anything is copied, or when another backup began meanwhile
 * @throws {GroupMismatch} when the database belongs to another group of writers
 * @throws {OperationFailed} when ClickHouse cannot write the backup
 * @throws ClickHouse's errors
 */
export async function runBackup(options: RunBackupOptions): Promise<BackupSummary> {
  const { client, groupId, location, signal, onWait, isReplica = false } = options;
  await requireCurrentSchema(client);
  await refuseOtherGroups(client, groupId);
  const { state, detail = '' } = (await readIdentity(client)) ?? {};
  if (state === 'filling') {
    throw new Refused(`The server is being filled: make the backup when "${fillingCommand(detail)}" is done.`);
  }
  const migrations = await readMigrations();
  const tables = new Map(PARTS.map((part) => [part, tablesOf(part, migrations)]));
  const bytesExpected = await readNumber(client, SIZE, { tables: [...tables.values()].flat() });
  const id = randomUUID();
  await recordBackup(client, id, location.name);
  const done = { files: 0, bytes: 0, written: 0 };
  for (const part of PARTS) {
    // What a part before depends on may have come to other replicas only: rows of tables come in any order.
    if (isReplica) for (const table of tables.get(part) ?? []) await levelReplica(client, table, { signal, onWait });
    const state = await carryOut(client, backupOf(part, tables.get(part) ?? [], location), {
      signal,
      onState: ({ bytesWritten }) => options.onProgress({ bytesWritten: done.written + bytesWritten, bytesExpected }),
    });
    done.files += state.files;
    done.bytes += state.bytes;
    done.written += state.bytesWritten;
    if (part === 'state') await requireOwnManifest(client, id);
  }
  await finishBackup(client, id, done.bytes);
  return { files: done.files, bytes: done.bytes };
}

/** @throws as {@link syncReplica} */
async function levelReplica(client: ClickHouseClient, table: string, options: SyncOptions): Promise<void> {
  try {
    await syncReplica(client, table, options);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw new Refused(`${error.message} Or back up another replica (--server).`);
  }
}

/** @throws {Refused} when the tables are not those of this version, or not ready */
async function requireCurrentSchema(client: ClickHouseClient): Promise<void> {
  if (!(await isMigrated(client))) {
    throw new Refused('The database has not been migrated to this version yet: start a writer of this version first.');
  }
  const known = (await readMigrations()).length;
  const newest = await readNumber(client, NEWEST_MIGRATION);
  if (newest > known) {
    throw new Refused(
      `The database has migration ${newest}, and this version knows ${known}: use the command of the newer version.`,
    );
  }
  if ((await readNumber(client, HALF_GROWN_TOPICS)) > 0) {
    throw new Refused('A growth of the partitions is not complete: run `writer grow-partitions` again first.');
  }
  // ClickHouse would not go on with them in a restored database.
  if ((await readNumber(client, UNFINISHED_MIGRATIONS)) > 0) {
    throw new Refused('A migration still works in the background (system.mutations); make the backup when it is done.');
  }
}

/**
 * The part with the manifest may hold the row of another backup that began at the same time, with later positions.
 *
 * @throws {Refused}
 */
async function requireOwnManifest(client: ClickHouseClient, id: string): Promise<void> {
  const newest = await readNewestBackup(client);
  if (newest?.id === id) return;
  throw new Refused('Another backup of this database began at the same time. Make one after the other.');
}
