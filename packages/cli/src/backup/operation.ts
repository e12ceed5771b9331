import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { BackupStatement } from './parts.ts';

/** How often ClickHouse is asked how far it is, in milliseconds. */
const POLL_MS = 250;

/** The longest part of an error of ClickHouse that is shown. */
const ERROR_LENGTH_MAX = 400;

/** ClickHouse did not carry out a BACKUP or RESTORE. The message is its reason. */
export class OperationFailed extends Error {
  override readonly name = 'OperationFailed';
  /** The name of ClickHouse's error, such as `BACKUP_NOT_FOUND`; empty when the operation was ended. */
  readonly type: string;

  constructor(message: string, type: string) {
    super(message);
    this.type = type;
  }
}

/** How far ClickHouse is. */
export interface OperationState {
  readonly files: number;
  /** The size of all files; of a BACKUP, of those that were copied so far. */
  readonly bytes: number;
  /** The bytes that a BACKUP has written. */
  readonly bytesWritten: number;
  /** The bytes that a RESTORE has read. */
  readonly bytesRead: number;
}

interface Row extends OperationState {
  readonly status: string;
  readonly error: string;
}

const READ_STATE = `SELECT status, error, toUInt64(num_files) AS files, total_size AS bytes,
    uncompressed_size AS bytesWritten, bytes_read AS bytesRead
  FROM system.backups WHERE id = {id:String}`;

const END = 'KILL QUERY WHERE query_id IN (SELECT query_id FROM system.backups WHERE id = {id:String}) ASYNC';

/**
 * Lets ClickHouse carry out a BACKUP or RESTORE in the background, and waits for its end. When `signal` aborts, ClickHouse
 * is told to end it, and removes what it has written.
 *
 * @returns the state at the end
 * @throws {OperationFailed}
 * @throws ClickHouse's errors, also when its connection breaks; then it goes on
 */
export async function carryOut(
  client: ClickHouseClient,
  { sql, params }: BackupStatement,
  { signal, onState }: { readonly signal: AbortSignal; readonly onState: (state: OperationState) => void },
): Promise<OperationState> {
  // In the body: an address may be logged on its way, and one of the parameters may be a secret.
  const begun = await client.query({
    query: sql,
    query_params: params,
    format: 'JSONEachRow',
    use_multipart_params: true,
  });
  const [operation] = await begun.json<{ id: string }>();
  if (!operation) throw new Error('ClickHouse has not begun');
  let isEnded = false;
  for (;;) {
    const row = await readState(client, operation.id);
    if (row.status === 'BACKUP_CREATED' || row.status === 'RESTORED') return row;
    if (row.status !== 'CREATING_BACKUP' && row.status !== 'RESTORING') throw failureOf(row, signal);
    onState(row);
    if (signal.aborted && !isEnded) {
      isEnded = true;
      await client.command({ query: END, query_params: { id: operation.id } });
    }
    await sleep(POLL_MS);
  }
}

async function readState(client: ClickHouseClient, id: string): Promise<Row> {
  const result = await client.query({ query: READ_STATE, query_params: { id }, format: 'JSONEachRow' });
  const [row] = await result.json<Row>();
  if (!row) throw new Error('ClickHouse has been restarted meanwhile');
  return row;
}

function failureOf({ error }: Row, signal: AbortSignal): OperationFailed {
  if (signal.aborted) return new OperationFailed('it was interrupted', '');
  return new OperationFailed(
    reasonOf(error),
    /\(([A-Z][A-Z0-9_]+)\)\s*(?:, Stack trace|\(version|$)/.exec(error)?.[1] ?? '',
  );
}

/** Returns the sentence of an error of ClickHouse, without its stack trace. */
function reasonOf(error: string): string {
  const [line = ''] = error.split(', Stack trace')[0]?.split('\n') ?? [];
  return line.replace(/^Code: \d+\. DB::Exception: /, '').slice(0, ERROR_LENGTH_MAX);
}
