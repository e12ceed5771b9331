import { Problem } from '@sluice/shared/http/problem';
import { whereSelected } from '../../records/events/event-selection.ts';
import type { QueryContext } from '../../store/query.ts';
import type { QueryRunner } from '../../store/query-runner.ts';
import {
  LARGE_ROWS_BLOCK,
  LARGE_ROWS_SETTINGS,
  POOL_SETTINGS,
  type QuerySettings,
} from '../../store/query-settings.ts';
import { REPORT } from '../report-runner.ts';
import type { ExportRequest } from './export-parameters.ts';

/** How many bytes of events a block of an export may have. */
const BLOCK_BYTES_MAX = 32 * 1_024 * 1_024;

/** About how much an event has besides its JSON, in bytes. */
const OTHER_BYTES = 512;

/** How many rows the blocks of an export have where events are small. */
const BLOCK_ROWS_MAX = Number(POOL_SETTINGS.exports['max_block_size']);

/**
 * Returns the settings by which the blocks of an export stay within {@link BLOCK_BYTES_MAX}: those of every export when
 * its events are small, else blocks of as few rows as its largest event allows for.
 *
 * Looking for the largest one reads the sizes alone. Filters on properties are left out, since they read the texts. When
 * it takes too long, events count as large.
 *
 * @throws {Problem} as {@link QueryRunner.rows} does, except `query_too_expensive`
 */
export async function blockSettings(
  queryRunner: Pick<QueryRunner, 'all'>,
  { selection }: Pick<ExportRequest, 'selection'>,
  context: QueryContext,
): Promise<QuerySettings> {
  const rows = rowsOfBlock(await largestEvent(queryRunner, selection, context));
  return rows >= BLOCK_ROWS_MAX ? {} : { ...LARGE_ROWS_SETTINGS, max_block_size: String(rows) };
}

function rowsOfBlock(largestBytes: number | undefined): number {
  if (largestBytes === undefined) return LARGE_ROWS_BLOCK;
  return Math.max(1, Math.floor(BLOCK_BYTES_MAX / (largestBytes + OTHER_BYTES)));
}

/** Returns the bytes of JSON in the largest of the events; `undefined` when that takes too long. */
async function largestEvent(
  queryRunner: Pick<QueryRunner, 'all'>,
  selection: ExportRequest['selection'],
  context: QueryContext,
): Promise<number | undefined> {
  const { sql, params } = whereSelected({ ...selection, properties: [] }, undefined);
  try {
    const [row] = await queryRunner.all({
      kind: 'event_sizes',
      statement: (tables) => ({ sql: `SELECT max(json_bytes) FROM ${tables.eventSizes}\n${sql}`, params }),
      ...context,
      ...REPORT,
    });
    return row?.[0] as number;
  } catch (error) {
    if (error instanceof Problem && error.code === 'query_too_expensive') return undefined;
    throw error;
  }
}
