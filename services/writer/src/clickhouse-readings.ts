import type { Logger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Component } from '@sluice/shared/service/lifecycle';
import { Measurement } from '@sluice/shared/service/measurement';
import { readStatements, type Statement } from '@sluice/storage/clickhouse/statements';

/** The statements of the readings, by their names. */
export const STATEMENTS = readStatements(new URL('./clickhouse-readings.sql', import.meta.url), [
  'read-server-state',
  'read-pending-erasures',
  'read-backup-age',
  'read-audits',
  'read-comparisons',
]);

/** How long a reading is used, in milliseconds. */
const FRESH_MS = 5_000;

/** How long a reading of audits is used, in milliseconds: they are rare, and their hours are many. */
const AUDITS_FRESH_MS = 30_000;

/** How long a reading may take, in milliseconds. */
const TIMEOUT_MS = 4_000;

/** What metrics read from ClickHouse: each reading is one query, for all who read the metrics at the same time. */
export class ClickHouseReadings implements Component {
  readonly name = 'ClickHouse readings';
  readonly #client: ClickHouseClient;
  readonly #logger: Logger;
  readonly #server: Measurement<ServerState>;
  readonly #erasures: Measurement<PendingErasures>;
  readonly #backupAge: Measurement<number>;
  readonly #audits: Measurement<AuditState>;
  readonly #comparisons: Measurement<readonly ServerComparison[]>;

  /** @param client its own: a reading must wait for no batch, and no batch for a reading */
  constructor(client: ClickHouseClient, logger: Logger) {
    this.#client = client;
    this.#logger = logger;
    this.#server = this.#reading('the disks and tables of ClickHouse', readServerState);
    this.#erasures = this.#reading('the pending erasures', readPendingErasures);
    this.#backupAge = this.#reading('the age of the last backup', readBackupAge);
    this.#audits = this.#reading('the audits', readAudits, AUDITS_FRESH_MS);
    this.#comparisons = this.#reading('the comparisons with other servers', readComparisons);
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    const all = [this.#server, this.#erasures, this.#backupAge, this.#audits, this.#comparisons];
    await Promise.all(all.map((reading) => reading.settled()));
    await this.#client.close();
  }

  /** Returns the state of the server, some seconds old at most; `undefined` when it cannot be read. Never throws. */
  async server(): Promise<ServerState | undefined> {
    return await this.#server.read();
  }

  /** Returns the pending erasures, some seconds old at most; `undefined` when they cannot be read. Never throws. */
  async erasures(): Promise<PendingErasures | undefined> {
    return await this.#erasures.read();
  }

  /** Returns {@link readBackupAge}, some seconds old at most; `undefined` when it cannot be read. Never throws. */
  async backupAge(): Promise<number | undefined> {
    return await this.#backupAge.read();
  }

  /** Returns {@link readAudits}, half a minute old at most; `undefined` when they cannot be read. Never throws. */
  async audits(): Promise<AuditState | undefined> {
    return await this.#audits.read();
  }

  /** Returns {@link readComparisons}, some seconds old at most; `undefined` when they cannot be read. Never throws. */
  async comparisons(): Promise<readonly ServerComparison[] | undefined> {
    return await this.#comparisons.read();
  }

  #reading<Result>(
    what: string,
    read: (client: ClickHouseClient, signal: AbortSignal) => Promise<Result>,
    freshMs = FRESH_MS,
  ): Measurement<Result> {
    let logged: string | undefined;
    return new Measurement({
      measure: (signal) => read(this.#client, signal),
      freshMs,
      timeoutMs: TIMEOUT_MS,
      onFailure: (error) => {
        const reason = (error as Error).message;
        if (reason !== logged) this.#logger.warn({ reason }, `${what} cannot be read; their metrics are absent`);
        logged = reason;
      },
      onSuccess: () => {
        logged = undefined;
      },
    });
  }
}

/** After how long ClickHouse itself ends a statement of this file, in seconds. */
const STATEMENT_SECONDS_MAX = 4;

interface DiskState {
  readonly disk: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
}

interface TableState {
  readonly table: string;
  /** The active parts of that partition which has the most. */
  readonly parts: number;
  /** With how many parts of a partition ClickHouse refuses inserts. */
  readonly partsLimit: number;
  readonly pendingMutations: number;
}

/** What ClickHouse says of itself. */
export interface ServerState {
  readonly disks: readonly DiskState[];
  /** The tables of the database that have parts. */
  readonly tables: readonly TableState[];
}

/** The deleted users who are not erased yet. */
export interface PendingErasures {
  readonly users: number;
  /** How long the first of them has waited; 0 when there is none. */
  readonly oldestSeconds: number;
}

/** What audits have found. */
export interface AuditState {
  /** Of the last 30 days, in the newest audit of each hour; `undefined` without a complete audit in 90 days. */
  readonly differences: Readonly<Record<'missing' | 'invented' | 'duplicates', number>> | undefined;
  /** Up to when all rows are accounted for, in seconds since 1970; `undefined` without a complete audit of everything in 90 days. */
  readonly balancedSeconds: number | undefined;
}

/** The newest comparison with another server. */
export interface ServerComparison {
  /** The name of the other server. */
  readonly other: string;
  /** When they were compared, in seconds since 1970. */
  readonly comparedSeconds: number;
  readonly differs: boolean;
}

interface ServerStateRow {
  readonly disk: string;
  readonly free_bytes: number;
  readonly total_bytes: number;
  readonly table: string;
  readonly parts: number;
  readonly parts_limit: number;
  readonly pending_mutations: number;
}

interface AuditsRow {
  readonly missing: number;
  readonly invented: number;
  readonly duplicates: number;
  readonly balanced_seconds: number | null;
  readonly is_audited: number;
}

/** Reads the state of the server. @throws ClickHouse's errors */
export async function readServerState(client: ClickHouseClient, signal: AbortSignal): Promise<ServerState> {
  const rows = await read<ServerStateRow>(client, STATEMENTS['read-server-state'], signal);
  return {
    disks: rows
      .filter(({ disk }) => disk !== '')
      .map((row) => ({ disk: row.disk, freeBytes: row.free_bytes, totalBytes: row.total_bytes })),
    tables: rows
      .filter(({ table }) => table !== '')
      .map((row) => ({
        ...{ table: row.table, parts: row.parts, partsLimit: row.parts_limit },
        pendingMutations: row.pending_mutations,
      })),
  };
}

/** Counts the deleted users who are not erased yet. @throws ClickHouse's errors */
export async function readPendingErasures(client: ClickHouseClient, signal: AbortSignal): Promise<PendingErasures> {
  const statement = STATEMENTS['read-pending-erasures'];
  const [row] = await read<{ users: number; oldest_seconds: number }>(client, statement, signal);
  return { users: row?.users ?? 0, oldestSeconds: Math.max(0, row?.oldest_seconds ?? 0) };
}

/**
 * Returns the time since the last complete backup began, in seconds; without any, since the database was created.
 *
 * @throws ClickHouse's errors
 */
export async function readBackupAge(client: ClickHouseClient, signal: AbortSignal): Promise<number> {
  const [row] = await read<{ age_seconds: number }>(client, STATEMENTS['read-backup-age'], signal);
  return Math.max(0, row?.age_seconds ?? 0);
}

/** Returns what audits have found. @throws ClickHouse's errors */
export async function readAudits(client: ClickHouseClient, signal: AbortSignal): Promise<AuditState> {
  const [row] = await read<AuditsRow>(client, STATEMENTS['read-audits'], signal);
  const { missing = 0, invented = 0, duplicates = 0 } = row ?? {};
  return {
    differences: row?.is_audited === 1 ? { missing, invented, duplicates } : undefined,
    balancedSeconds: row?.balanced_seconds ?? undefined,
  };
}

/** Returns the newest comparison with each other server. @throws ClickHouse's errors */
async function readComparisons(client: ClickHouseClient, signal: AbortSignal): Promise<ServerComparison[]> {
  const statement = STATEMENTS['read-comparisons'];
  const rows = await read<{ other: string; compared_seconds: number; differs: number }>(client, statement, signal);
  return rows.map(({ other, compared_seconds: comparedSeconds, differs }) => ({
    ...{ other, comparedSeconds },
    differs: differs === 1,
  }));
}

async function read<Row>(client: ClickHouseClient, { sql }: Statement, signal: AbortSignal): Promise<Row[]> {
  const result = await client.query({
    query: sql,
    format: 'JSONEachRow',
    abort_signal: signal,
    clickhouse_settings: { max_execution_time: STATEMENT_SECONDS_MAX },
  });
  return await result.json<Row>();
}
