import { z } from 'zod';
import { limitSchema, nextCursorSchema } from '../../http/http.ts';
import { isoTime } from '../entities/entity-record.ts';

/** The largest body of what somebody says, in bytes: more than two identifiers take, however they are escaped. */
export const IDENTITY_BODY_BYTES_MAX = 16 * 1_024;

/** Returns a page of rows, of which there is one more than the page has where another page follows. */
export function pageOf<Row>(
  rows: readonly Row[],
  limit: number,
  recordOf: (row: Row) => object,
  cursorAfter: (last: Row) => string,
) {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return { limit, results: shown.map(recordOf), nextCursor: last && rows.length > limit ? cursorAfter(last) : null };
}

/** Returns the schema of such a page. @param id its name in the OpenAPI document */
export function pageSchema(id: string, result: z.ZodType) {
  return z.object({ limit: limitSchema, results: z.array(result), nextCursor: nextCursorSchema }).meta({ id });
}

/** What ingest-api may respond with to what is passed on. */
export const FORWARDED_CODES = ['event_log_unavailable', 'deletions_not_available'] as const;

export function timeOf(versionUs: number): string {
  return isoTime(Math.floor(versionUs / 1_000));
}
