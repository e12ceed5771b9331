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

export function timeOf(versionUs: number): string {
  return isoTime(Math.floor(versionUs / 1_000));
}
