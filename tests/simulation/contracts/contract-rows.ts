import { randomUUID } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { EventRow } from '@sluice/shared/rows';
import { STATEMENTS as STORAGE_STATEMENTS } from '@sluice/storage/clickhouse/statements';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import { STATEMENTS } from '@sluice/writer/batch/statements';

export const MARCH_MS = Date.UTC(2026, 2, 1, 12);

/** Of how many months a long insert has events. */
export const MONTHS = 24;

/** How often contracts look whether something has happened, in milliseconds. */
export const POLL_MS = 5;

/** The rows of each month are written one after the other, as those of a large insert are. */
export const MONTH_BY_MONTH: ClickHouseSettings = {
  min_insert_block_size_rows: '1',
  min_insert_block_size_bytes: '0',
  max_threads: 1,
};

/** How throwIf() refuses. */
export const REFUSED = 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO';

/** Returns an event of a user of March. @param fields in place of its own */
export function event(fields: Partial<EventRow> = {}): EventRow {
  const row = { workspace_id: 'w', timestamp: MARCH_MS, uuid: randomUUID(), event: 'e', user_id: 'ada' };
  return { ...row, received_at: MARCH_MS * 1_000, ...fields };
}

/** Returns rows as an insert takes them. */
export function linesOf(rows: readonly object[]): Buffer[] {
  return rows.map((row) => Buffer.from(`${JSON.stringify(row)}\n`));
}

/** Returns how many events are staged. */
export async function eventsIn(tables: Pick<TemporaryTables, 'read'>): Promise<number> {
  const [row] = await tables.read<{ readonly events: number }>(STATEMENTS['inspect-events'], { server: '' });
  return row?.events ?? 0;
}

/** Records an epoch. @param server the name of the one that is to do it; default: whichever does */
export async function recordEpoch(
  client: ClickHouseClient,
  { group = 'group', generation, server = '' }: { group?: string; generation: number; server?: string },
): Promise<void> {
  const query_params = { group, incarnation: 1, generation, leaderId: 'leader', server };
  await client.command({ query: STORAGE_STATEMENTS['record-epoch'].sql, query_params });
}

/** Ends the statements whose query ids begin so. */
export async function endStatements(client: ClickHouseClient, prefix: string): Promise<void> {
  await client.command({ query: STATEMENTS['end-own-statements'].sql, query_params: { prefix } });
}

/** Returns the type of the error with which an engine refuses something, or what else went wrong, or `nothing`. */
export async function refusalOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'nothing',
    (error: Error & { readonly type?: string }) => error.type ?? String(error.stack),
  );
}
