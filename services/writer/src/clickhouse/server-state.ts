import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Statement } from './statement.ts';
import { STATEMENTS } from './statements.ts';

/** After how long ClickHouse itself ends a statement of this file, in seconds. */
const STATEMENT_SECONDS_MAX = 4;

export interface DiskState {
  readonly disk: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
}

export interface TableState {
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

/** Returns the newest comparison with each other server. @throws ClickHouse's errors */
export async function readComparisons(client: ClickHouseClient, signal: AbortSignal): Promise<ServerComparison[]> {
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
