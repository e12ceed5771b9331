import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { type Migration, readMigrations } from '@sluice/shared/clickhouse/migrate';
import { Halts } from '@sluice/writer/clickhouse/halts';
import type { Kafka } from 'kafkajs';
import type { BackupConfig } from './config.ts';
import { checkLogs, type LogCheck, requireStoppedWriters, rewindGroup } from './log-check.ts';
import { finishBackup, type Manifest, readNewestBackup, resetPositions } from './manifest.ts';
import { carryOut, OperationFailed, type OperationState } from './operation.ts';
import { PARTS, restoreOf, tablesOf } from './parts.ts';
import type { Place } from './place.ts';
import { readNumber } from './read-number.ts';
import { Refused } from './refused.ts';

export interface RestoreOptions {
  readonly config: BackupConfig;
  readonly kafka: Kafka;
  /** Of the server; its database is one that always exists. */
  readonly server: ClickHouseClient;
  /** Creates a client for a database that exists. */
  readonly scratchOf: (database: string) => ClickHouseClient;
  readonly place: Place;
  readonly signal: AbortSignal;
}

/** A database that a restore drops. */
export interface ReplacedDatabase {
  /** Whether it has the deletions of users, which are kept. */
  readonly hasDeletions: boolean;
  readonly tables: number;
  readonly rows: number;
  /** Its tables and views that are not of Sluice. */
  readonly foreign: readonly string[];
}

/** What a restore would do. */
export interface RestorePlan {
  readonly manifest: Manifest;
  readonly migrations: readonly Migration[];
  readonly logs: LogCheck;
  /** The database that is replaced; undefined when there is none, or an empty one. */
  readonly replaces: ReplacedDatabase | undefined;
}

export interface RestoreProgress {
  readonly part: string;
  readonly bytesRead: number;
  readonly bytes: number;
}

export interface RestoreSummary {
  readonly bytes: number;
  readonly seconds: number;
  /** Why the offsets of the group were not set back; undefined when they were. */
  readonly notRewound: string | undefined;
}

const RESTORES = `SELECT count() AS number FROM system.backups WHERE status = 'RESTORING'`;

const TABLES = `SELECT name, ifNull(total_rows, 0) AS rows FROM system.tables
  WHERE database = {database:String} ORDER BY name`;

const EXISTS = 'SELECT count() AS number FROM system.databases WHERE name = {database:String}';

/** The deletions of the present database that the restored one does not have. Its writers erase them again. */
const KEEP_PENDING = `
INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at)
SELECT workspace_id, user_id, max(version) AS newest, now64(3)
FROM {present:Identifier}.user_deletions
GROUP BY workspace_id, user_id
HAVING (workspace_id, user_id, newest) NOT IN (
  SELECT workspace_id, user_id, max(version) FROM user_deletions GROUP BY workspace_id, user_id
)`;

const KEEP_DELETIONS = `
INSERT INTO user_deletions (workspace_id, user_id, version)
SELECT workspace_id, user_id, max(version) FROM {present:Identifier}.user_deletions GROUP BY workspace_id, user_id`;

const DROP = 'DROP DATABASE IF EXISTS {database:Identifier} SYNC';

/** What the database has twice while it is replaced is dropped, however large it is. */
const ANY_SIZE = { max_table_size_to_drop: '0', max_partition_size_to_drop: '0' } as const;

/**
 * Restores a backup. The tables are restored into a database beside the present one, and checked there. The two are
 * exchanged at the end, so whatever fails before leaves everything as it was.
 */
export class Restore {
  readonly #options: RestoreOptions;
  readonly #database: string;
  /** Where the tables are restored to. A restore that was interrupted leaves it, and the next one drops it. */
  readonly #scratch: string;
  /** The database that is being replaced. */
  readonly #replaced: string;

  constructor(options: RestoreOptions) {
    this.#options = options;
    this.#database = options.config.CLICKHOUSE_DATABASE;
    this.#scratch = `${this.#database}_restoring`;
    this.#replaced = `${this.#database}_replaced`;
  }

  /**
   * Checks the backup, the writers and Kafka, and returns what the restore would do. It changes nothing.
   *
   * @throws {Refused}
   * @throws kafkajs's and ClickHouse's errors
   */
  async plan(): Promise<RestorePlan> {
    const { config, kafka, server } = this.#options;
    if ((await readNumber(server, RESTORES)) > 0) throw new Refused('Another restore is running.');
    await requireStoppedWriters(kafka, config.KAFKA_GROUP_ID);
    const { manifest, migrations } = await this.#inScratch((scratch) => this.#readBackup(scratch));
    return { manifest, migrations, logs: await checkLogs(kafka, config, manifest), replaces: await this.#present() };
  }

  /**
   * Restores everything, and exchanges the databases.
   *
   * @throws {Refused} when the backup is broken, or a writer was started meanwhile; then nothing is changed
   * @throws kafkajs's and ClickHouse's errors
   */
  async run(
    { manifest, migrations, logs, replaces }: RestorePlan,
    onProgress: (progress: RestoreProgress) => void,
  ): Promise<RestoreSummary> {
    const { config, kafka, signal } = this.#options;
    const startedAt = performance.now();
    let bytes = 0;
    await this.#inScratch(async (scratch) => {
      for (const part of PARTS) {
        const tables = tablesOf(part, migrations);
        const state = await this.#carryOut(scratch, restoreOf(part, tables, this.#options.place), (at) =>
          onProgress({ part, bytesRead: at.bytesRead, bytes: at.bytes }),
        );
        bytes += state.bytes;
        for (const table of tables) await requireSound(scratch, table);
      }
      await resetPositions(scratch, manifest.id);
      const halts = new Halts(scratch, config.KAFKA_GROUP_ID);
      // Without a position that was chosen, the writers would halt these partitions.
      for (const { topic, partition } of logs.fresh) await halts.resume(topic, partition, 0n);
      for (const { topic, partition, low } of logs.gaps) await halts.resume(topic, partition, low);
      if (replaces?.hasDeletions) await this.#keepDeletions(scratch);
      await finishBackup(scratch, manifest.id, bytes);
      signal.throwIfAborted();
      await requireStoppedWriters(kafka, config.KAFKA_GROUP_ID);
      await this.#exchange();
    });
    const notRewound = await rewindGroup(kafka, config.KAFKA_GROUP_ID, logs.starts).then(
      () => undefined,
      (error: Error) => error.message,
    );
    return { bytes, seconds: (performance.now() - startedAt) / 1_000, notRewound };
  }

  /** Runs `work` with an empty database beside the present one, and drops it. */
  async #inScratch<Result>(work: (scratch: ClickHouseClient) => Promise<Result>): Promise<Result> {
    const { server, scratchOf } = this.#options;
    await this.#drop(this.#scratch);
    await server.command({
      query: 'CREATE DATABASE {database:Identifier}',
      query_params: { database: this.#scratch },
    });
    const scratch = scratchOf(this.#scratch);
    try {
      return await work(scratch);
    } finally {
      await scratch.close();
      await this.#drop(this.#scratch);
    }
  }

  /** @throws {Refused} when it is no backup of Sluice, or of a newer version, or not complete */
  async #readBackup(scratch: ClickHouseClient): Promise<Pick<RestorePlan, 'manifest' | 'migrations'>> {
    const { place } = this.#options;
    await this.#carryOut(scratch, restoreOf('state', ['backups'], place));
    const manifest = await readNewestBackup(scratch);
    if (!manifest) throw new Refused(`${place.name} has no manifest: it is no backup of Sluice.`);
    const known = await readMigrations();
    if (manifest.migration > known.length) {
      throw new Refused(
        `${place.name} is a backup of Sluice ${manifest.sluiceVersion} with migration ${manifest.migration}, and this ` +
          `version knows ${known.length}: restore it with that version.`,
      );
    }
    const migrations = known.filter(({ number }) => number <= manifest.migration);
    await scratch.command({ query: 'DROP TABLE backups SYNC' });
    for (const part of PARTS) {
      await this.#carryOut(scratch, restoreOf(part, tablesOf(part, migrations), place, 'structure'));
    }
    return { manifest, migrations };
  }

  /** @throws {Refused} with ClickHouse's reason */
  async #carryOut(
    scratch: ClickHouseClient,
    statement: Parameters<typeof carryOut>[1],
    onState: (state: OperationState) => void = () => {},
  ): Promise<OperationState> {
    const { signal, place } = this.#options;
    try {
      return await carryOut(scratch, statement, { signal, onState });
    } catch (error) {
      if (!(error instanceof OperationFailed) || signal.aborted) throw error;
      throw error.type === 'BACKUP_NOT_FOUND' || error.type === 'BACKUP_ENTRY_NOT_FOUND'
        ? new Refused(`${place.name} holds no complete backup of Sluice: ${error.message}`)
        : error;
    }
  }

  async #present(): Promise<RestorePlan['replaces']> {
    const { server } = this.#options;
    const query_params = { database: this.#database };
    const result = await server.query({ query: TABLES, query_params, format: 'JSONEachRow' });
    const found = await result.json<{ name: string; rows: number }>();
    if (found.length === 0) return undefined;
    const migrations = await readMigrations();
    const own = new Set(PARTS.flatMap((part) => tablesOf(part, migrations)));
    return {
      hasDeletions: found.some(({ name }) => name === 'user_deletions'),
      tables: found.length,
      rows: found.reduce((sum, { rows }) => sum + rows, 0),
      foreign: found.map(({ name }) => name).filter((name) => !own.has(name)),
    };
  }

  /**
   * Takes over the deletions of users from the present database. Otherwise users who were deleted since the backup would be
   * visible until the writers have read their deletions again, and for ever where Kafka no longer has them.
   */
  async #keepDeletions(scratch: ClickHouseClient): Promise<void> {
    const query_params = { present: this.#database };
    await scratch.command({ query: KEEP_PENDING, query_params });
    await scratch.command({ query: KEEP_DELETIONS, query_params });
  }

  /** Between the two renames there is no database. A restore that ends there can be repeated. */
  async #exchange(): Promise<void> {
    const { server } = this.#options;
    const exists = (await readNumber(server, EXISTS, { database: this.#database })) > 0;
    if (exists) {
      await this.#drop(this.#replaced);
      await this.#rename(this.#database, this.#replaced);
    }
    await this.#rename(this.#scratch, this.#database);
    await this.#drop(this.#replaced);
  }

  async #rename(from: string, to: string): Promise<void> {
    await this.#options.server.command({
      query: 'RENAME DATABASE {from:Identifier} TO {to:Identifier}',
      query_params: { from, to },
    });
  }

  async #drop(database: string): Promise<void> {
    await this.#options.server.command({ query: DROP, query_params: { database }, clickhouse_settings: ANY_SIZE });
  }
}

/** RESTORE compares the sizes of files only. @throws {Refused} when a block of a table has another checksum */
async function requireSound(client: ClickHouseClient, table: string): Promise<void> {
  const result = await client.query({
    query: 'CHECK TABLE {table:Identifier}',
    query_params: { table },
    clickhouse_settings: { check_query_single_value_result: '0' } as never,
    format: 'JSONEachRow',
  });
  const parts = await result.json<{ part_path: string; is_passed: boolean | number; message: string }>();
  const broken = parts.find(({ is_passed }) => !is_passed);
  if (broken) throw new Refused(`The backup is broken: ${table}, part ${broken.part_path}: ${broken.message}`);
}
