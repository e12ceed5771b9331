import { createLogger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { type Migration, migrate, readMigrations } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import { readNumber } from '@sluice/shared/clickhouse/read-number';
import { Refused } from '@sluice/shared/config/command-line';
import { Halts } from '@sluice/storage/clickhouse/halts';
import { forgetBlockNumbers, readIdentity } from '@sluice/storage/clickhouse/identity';
import type { DatabaseOwner } from '@sluice/storage/clickhouse/own-database';
import { requireStoppedWriters, rewindGroup } from '@sluice/storage/kafka/stopped-writers';
import type { Kafka } from 'kafkajs';
import type { BackupLocation } from './backup-location.ts';
import type { BackupConfig } from './config.ts';
import { creationOf, keepDeletions, keepOtherDeletions, type OtherServer, restartRetention } from './kept-rows.ts';
import { checkLogs, type LogCheck } from './log-check.ts';
import { finishBackup, readNewestBackup, resetPositions } from './manifest.ts';
import { type BackupOwner, changeOwner, isOfAnotherServer, recordWhatIsMissing } from './new-owner.ts';
import { carryOut, OperationFailed, type OperationState } from './operation.ts';
import { PARTS, type Part, restoreOf, tablesOf } from './parts.ts';
import { BESIDE, dropDatabase, HalfReplaced, MOVED_FIRST, type RestoredReplicas } from './replicas.ts';

export interface RestoreOptions {
  readonly config: BackupConfig;
  /** Whose the restored database will be. */
  readonly owner: DatabaseOwner;
  /** The other servers of the file; undefined without one. */
  readonly others: readonly OtherServer[] | undefined;
  /** All replicas of the database. Default: the server has its rows alone. */
  readonly replicas?: RestoredReplicas | undefined;
  readonly kafka: Kafka;
  /** Connects to a database of the server that always exists. */
  readonly server: ClickHouseClient;
  /** Creates a client for a database that exists. */
  readonly scratchOf: (database: string) => ClickHouseClient;
  readonly location: BackupLocation;
  readonly signal: AbortSignal;
}

/** A database that a restore drops. */
export interface ReplacedDatabase {
  /** Whether it has the deletions of users, which are kept. */
  readonly hasDeletions: boolean;
  /** Whether it has settings of retention, which are kept. */
  readonly hasRetention: boolean;
  readonly tables: number;
  readonly rows: number;
  /** Its tables and views that are not of Sluice. */
  readonly foreign: readonly string[];
}

/** What a restore would do. */
export interface RestorePlan extends BackupOwner {
  /** Whether the backup is that of another server, whose identity must not be restored. */
  readonly isOfAnother: boolean;
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
  /** The other servers that have not answered: deletions that they alone have are missing. */
  readonly away: readonly string[];
  /** The replicas that do not say yet that the database is complete. */
  readonly late: readonly string[];
}

const RESTORES = `SELECT count() AS number FROM system.backups WHERE status = 'RESTORING'`;

const TABLES = `SELECT name, ifNull(total_rows, 0) AS rows FROM system.tables
  WHERE database = {database:String} ORDER BY name`;

const EXISTS = 'SELECT count() AS number FROM system.databases WHERE name = {database:String}';

/** ClickHouse passes on what its parser of XML says. */
const UNREADABLE_LIST = /SAXParseException/;

/**
 * Restores a backup. The tables are restored into a database beside the present one, and checked there. The two are
 * exchanged at the end, so whatever fails before leaves everything as it was. Of replicas, the present ones are dropped then, and the rows
 * are moved into new ones: what fails there is repeated.
 */
export class Restore {
  readonly #options: RestoreOptions;
  readonly #database: string;
  /** Where the tables are restored to. A restore that was interrupted leaves it, and the next one drops it. */
  readonly #scratch: string;
  /**
   * What a whole scratch database becomes: the database itself; of replicas, one of which the rows are moved to theirs. A restore that is
   * broken off from then on leaves that one, since nothing else has the deletions of the databases that were dropped: the next one takes
   * them over.
   */
  readonly #target: string;
  /** What was there under the name of the target, while it is being replaced. */
  readonly #replaced: string;

  constructor(options: RestoreOptions) {
    this.#options = options;
    this.#database = options.config.CLICKHOUSE_DATABASE;
    this.#scratch = `${this.#database}${BESIDE.restoring}`;
    this.#target = options.replicas ? `${this.#database}${BESIDE.replacing}` : this.#database;
    this.#replaced = `${this.#database}${BESIDE.replaced}`;
  }

  /**
   * Checks the backup, the writers and Kafka, and returns what the restore would do. It changes nothing, but for the name of
   * a database that a restore had renamed when it was interrupted.
   *
   * @throws {Refused}
   * @throws kafkajs's and ClickHouse's errors
   */
  async plan(): Promise<RestorePlan> {
    const { config, kafka, server, owner, others, replicas } = this.#options;
    if ((await readNumber(server, RESTORES)) > 0) throw new Refused('Another restore is running.');
    await replicas?.requireAll();
    await this.#requireStopped(await this.#groups());
    await this.#undoExchange();
    const { migrations, ...backup } = await this.#inScratch((scratch) => this.#readBackup(scratch));
    const groups = others && [owner.group, ...others.map(({ group }) => group)];
    // Replicas have no name in common.
    const isOfNamed = replicas !== undefined && backup.identity?.server !== '';
    const isOfAnother = isOfAnotherServer(backup, owner, groups) || isOfNamed;
    const logs = await checkLogs(kafka, config, backup.manifest, isOfAnother ? undefined : owner.group);
    return { ...backup, migrations, isOfAnother, logs, replaces: await this.#present() };
  }

  /**
   * Restores everything, and exchanges the databases.
   *
   * @param onMoved is told, as a sentence, how far other replicas are with what was moved
   * @throws {Refused} when the backup is broken, or a writer was started meanwhile; then nothing is changed
   * @throws {HalfReplaced} when replicas were dropped and are not whole yet; the restore may be repeated
   * @throws kafkajs's and ClickHouse's errors
   */
  async run(
    plan: RestorePlan,
    onProgress: (progress: RestoreProgress) => void,
    onMoved: (line: string) => void = () => {},
  ): Promise<RestoreSummary> {
    const { kafka, signal, owner, replicas } = this.#options;
    const startedAt = performance.now();
    let bytes = 0;
    let away: readonly string[] = [];
    let late: readonly string[] = [];
    await this.#inScratch(async (scratch) => {
      await this.#createPlain(plan.migrations);
      for (const part of PARTS) {
        const tables = tablesOf(part, plan.migrations);
        const state = await this.#carryOut(scratch, this.#rowsOf(part, tables), (at) =>
          onProgress({ part, bytesRead: at.bytesRead, bytes: at.bytes }),
        );
        bytes += state.bytes;
        for (const table of tables) await requireSound(scratch, table);
      }
      away = await this.#adapt(scratch, plan);
      await finishBackup(scratch, plan.manifest.id, bytes);
      signal.throwIfAborted();
      const groups = await this.#groups();
      const requireStopped = () => this.#requireStopped(groups);
      await requireStopped();
      const restored = { migrations: plan.migrations, groups, onProgress: onMoved };
      if (replicas) late = await this.#replaceAt(replicas, restored, requireStopped);
      else await this.#exchange();
    });
    const notRewound = await rewindGroup(kafka, owner.group, plan.logs.starts).then(
      () => undefined,
      (error: Error) => error.message,
    );
    return { bytes, seconds: (performance.now() - startedAt) / 1_000, notRewound, away, late };
  }

  /** The consumer groups whose writers may store into the database, or into one that is replaced. */
  async #groups(): Promise<readonly string[]> {
    const { owner, replicas } = this.#options;
    return [...new Set([owner.group, ...((await replicas?.groups()) ?? [])])];
  }

  async #requireStopped(groups: readonly string[]): Promise<void> {
    for (const group of groups) await requireStoppedWriters(this.#options.kafka, group);
  }

  /**
   * Makes what was restored fit to the present: to its server, to what Kafka has, and to what was deleted since the backup.
   *
   * @returns the other servers that have not answered
   */
  async #adapt(scratch: ClickHouseClient, plan: RestorePlan): Promise<readonly string[]> {
    const { owner, replicas, signal } = this.#options;
    const { manifest, migrations, isOfAnother, logs, replaces } = plan;
    if (isOfAnother) await changeOwner(scratch, migrations, owner);
    await resetPositions(scratch, manifest.id, owner.group);
    const halts = new Halts(scratch, owner.group);
    // Without a position that was chosen, the writers would halt these partitions.
    for (const { topic, partition } of logs.fresh) await halts.resume(topic, partition, 0n);
    for (const { topic, partition, low } of logs.gaps) await halts.resume(topic, partition, low);
    await recordWhatIsMissing(scratch, plan, owner);
    await forgetBlockNumbers(scratch, new Set(PARTS.flatMap((part) => tablesOf(part, migrations))));
    if (replaces?.hasDeletions) await keepDeletions(scratch, this.#database, 'user_deletions');
    const kept = await this.#kept();
    if (kept?.hasDeletions) await keepDeletions(scratch, this.#target, 'user_deletions');
    if (replaces?.hasRetention) await replicas?.syncFirst('retention', { signal });
    const present = replaces?.hasRetention ? [this.#database] : [];
    await restartRetention(scratch, kept?.hasRetention ? [...present, this.#target] : present);
    return await this.#keepDeletionsOfOthers(scratch);
  }

  /** Another server keeps what it has when it does not answer now; a replica loses it, since its database is dropped. */
  async #keepDeletionsOfOthers(scratch: ClickHouseClient): Promise<readonly string[]> {
    const { others = [], replicas } = this.#options;
    const dropped = (await replicas?.othersWithDeletions()) ?? [];
    const away = await keepOtherDeletions(scratch, this.#scratch, [...others, ...dropped]);
    const lost = dropped.filter(({ name }) => away.includes(name)).map(({ name }) => name);
    if (lost.length === 0) return away;
    throw new Refused(
      `${lost.join(' and ')} cannot be read: its deletions of users would be lost. Try again when it can.`,
    );
  }

  /** What a restore of replicas that was broken off has kept. */
  async #kept(): Promise<RestorePlan['replaces']> {
    const { server, replicas } = this.#options;
    return replicas && (await this.#presentAt(server, this.#target));
  }

  /**
   * Creates plain tables in the scratch database, where those of a backup may be replicated ones: their names in Keeper are those of the
   * present tables. Otherwise RESTORE creates them.
   */
  async #createPlain(migrations: readonly Migration[]): Promise<void> {
    const { config, replicas } = this.#options;
    if (!replicas) return;
    const plain = { ...config, CLICKHOUSE_REPLICATION: undefined, CLICKHOUSE_DATABASE: this.#scratch };
    await migrate(plain, createLogger('sluice-restore', 'error'), migrations);
  }

  /** The statement that restores the rows of tables. The records of migrations that were applied just now are there. */
  #rowsOf(part: Part, tables: readonly string[]): Parameters<typeof carryOut>[1] {
    const { location, replicas } = this.#options;
    if (!replicas) return restoreOf(part, tables, location);
    const restored = tables.filter((table) => table !== 'schema_migrations');
    return restoreOf(part, restored, location, { areThere: true });
  }

  /** Restores a table that is alone in the scratch database. */
  async #restoreAlone(scratch: ClickHouseClient, part: Part, table: string): Promise<void> {
    if (this.#options.replicas) await scratch.command({ query: await creationOf(table) });
    await this.#carryOut(scratch, this.#rowsOf(part, [table]));
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
  async #readBackup(scratch: ClickHouseClient): Promise<BackupOwner & Pick<RestorePlan, 'migrations'>> {
    const { location, replicas } = this.#options;
    await this.#restoreAlone(scratch, 'state', 'backups');
    const manifest = await readNewestBackup(scratch);
    if (!manifest) throw new Refused(`${location.name} has no manifest: it is no backup of Sluice.`);
    const known = await readMigrations();
    if (manifest.migration > known.length) {
      throw new Refused(
        `${location.name} is a backup of Sluice ${manifest.sluiceVersion} with migration ${manifest.migration}, and this ` +
          `version knows ${known.length}: restore it with that version.`,
      );
    }
    const migrations = known.filter(({ number }) => number <= manifest.migration);
    const tables = migrations.map(createdTable);
    // Deletions are kept in all of these.
    if (replicas && !MOVED_FIRST.every((table) => tables.includes(table))) {
      throw new Refused(
        `${location.name} is a backup of Sluice ${manifest.sluiceVersion}, which had no replicas: restore it at one server, start a writer ` +
          'of this version there, and restore a backup of that.',
      );
    }
    await scratch.command({ query: 'DROP TABLE backups SYNC' });
    const hasIdentity = tables.includes('database_identity');
    if (hasIdentity) await this.#restoreAlone(scratch, 'tables', 'database_identity');
    const identity = hasIdentity ? await readIdentity(scratch) : undefined;
    if (hasIdentity) await scratch.command({ query: 'DROP TABLE database_identity SYNC' });
    await this.#createPlain(migrations);
    for (const part of PARTS) {
      const options = { what: 'structure', areThere: replicas !== undefined } as const;
      await this.#carryOut(scratch, restoreOf(part, tablesOf(part, migrations), location, options));
    }
    return { manifest, migrations, identity };
  }

  /** @throws {Refused} with what is wrong with the backup */
  async #carryOut(
    scratch: ClickHouseClient,
    statement: Parameters<typeof carryOut>[1],
    onState: (state: OperationState) => void = () => {},
  ): Promise<OperationState> {
    const { signal, location } = this.#options;
    try {
      return await carryOut(scratch, statement, { signal, onState });
    } catch (error) {
      if (!(error instanceof OperationFailed) || signal.aborted) throw error;
      if (UNREADABLE_LIST.test(error.message) || error.type === 'BACKUP_DAMAGED') {
        throw new Refused(
          `The backup is broken: ${statement.params['path']}/.backup, its list of files, is cut off or is no such list. ` +
            'Take another backup.',
        );
      }
      throw error.type === 'BACKUP_NOT_FOUND' || error.type === 'BACKUP_ENTRY_NOT_FOUND'
        ? new Refused(`${location.name} holds no complete backup of Sluice: ${error.message}`)
        : error;
    }
  }

  /**
   * Of replicas, the one that has the most rows may be another one: all of them are replaced.
   *
   * @throws {Refused} when the settings that are to be kept are at another replica alone
   */
  async #present(): Promise<RestorePlan['replaces']> {
    const { server, replicas } = this.#options;
    const own = await this.#presentAt(server);
    const others = await Promise.all((replicas?.others() ?? []).map((other) => this.#presentAt(other)));
    const isElsewhere = !own?.hasRetention && others.some((other) => other?.hasRetention);
    if (isElsewhere && !(await this.#kept())) {
      throw new Refused(
        'Another replica has the database, and this one does not: choose that one (--server), so that its settings are kept.',
      );
    }
    const [most] = [own, ...others].filter((one) => one !== undefined).sort((one, other) => other.rows - one.rows);
    const { hasDeletions = false, hasRetention = false } = own ?? {};
    return most && { ...most, hasDeletions, hasRetention };
  }

  async #presentAt(server: ClickHouseClient, database = this.#database): Promise<RestorePlan['replaces']> {
    const query_params = { database };
    const result = await server.query({ query: TABLES, query_params, format: 'JSONEachRow' });
    const found = await result.json<{ name: string; rows: number }>();
    if (found.length === 0) return undefined;
    const migrations = await readMigrations();
    const own = new Set(PARTS.flatMap((part) => tablesOf(part, migrations)));
    return {
      hasDeletions: found.some(({ name }) => name === 'user_deletions'),
      hasRetention: found.some(({ name }) => name === 'retention'),
      tables: found.length,
      rows: found.reduce((sum, { rows }) => sum + rows, 0),
      foreign: found.map(({ name }) => name).filter((name) => !own.has(name)),
    };
  }

  /** Replaces the database at all replicas by what was restored. */
  async #replaceAt(
    replicas: RestoredReplicas,
    restored: Parameters<RestoredReplicas['replace']>[1],
    requireStopped: () => Promise<void>,
  ): Promise<readonly string[]> {
    const isRepeated = await this.#exists(this.#target);
    await this.#exchange();
    const whole = this.#options.scratchOf(this.#target);
    let late: readonly string[] = [];
    try {
      late = await replicas.replace(whole, restored, requireStopped);
    } catch (error) {
      // Nothing was dropped, and what a former restore has kept is not lost.
      if (!(error instanceof HalfReplaced || isRepeated)) await this.#drop(this.#target);
      throw error;
    } finally {
      await whole.close();
    }
    await this.#drop(this.#target).catch(({ message }: Error) => {
      restored.onProgress?.(`The database ${this.#target} is left, and is not needed any more: ${message}`);
    });
    return late;
  }

  /** Between the two renames there is no target. What a restore that ends there has renamed, the next one renames back. */
  async #exchange(): Promise<void> {
    if (await this.#exists(this.#target)) {
      await this.#drop(this.#replaced);
      await this.#rename(this.#target, this.#replaced);
    }
    try {
      await this.#rename(this.#scratch, this.#target);
    } catch (error) {
      await this.#undoExchange();
      throw error;
    }
    await this.#drop(this.#replaced);
  }

  async #undoExchange(): Promise<void> {
    if ((await this.#exists(this.#target)) || !(await this.#exists(this.#replaced))) return;
    await this.#rename(this.#replaced, this.#target);
  }

  async #exists(database: string): Promise<boolean> {
    return (await readNumber(this.#options.server, EXISTS, { database })) > 0;
  }

  async #rename(from: string, to: string): Promise<void> {
    await this.#options.server.command({
      query: 'RENAME DATABASE {from:Identifier} TO {to:Identifier}',
      query_params: { from, to },
    });
  }

  async #drop(database: string): Promise<void> {
    await dropDatabase(this.#options.server, database);
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
