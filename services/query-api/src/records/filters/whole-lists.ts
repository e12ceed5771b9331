import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { encodeCursor, LIMIT_MAX, limitSchema, nextCursorSchema, readCursor } from '../../http/http.ts';
import { cursorParameter, limitParameter } from './parameter-schemas.ts';
import { parseParameters, refuseErrors } from './parameters.ts';

// Lists of what a workspace has saved. They are whole without a limit, unless they are larger than a page may be.

/** The parameters of such a list. */
export const wholeListParameters = {
  limit: limitParameter.meta({ override: { default: LIMIT_MAX } }),
  cursor: cursorParameter('path'),
} as const;

/** What its response has besides the list. */
export const pageMembers = { limit: limitSchema, nextCursor: nextCursorSchema } as const;

const sortKey = z.tuple([z.int(), z.uuid()]);

/** A page has so many bytes as they are stored, and one record more at most. */
export const PAGE_BYTES = 1_024 * 1_024;

/** What is read of each record before a page is. */
export interface SizedRow {
  readonly id: string;
  readonly bytes: number;
}

/** Returns the ids of those that a page has, of records in their order. The first one fits whatever its size is. */
export function fittingIds(rows: readonly SizedRow[], limit: number): readonly string[] {
  let bytes = 0;
  const fitting: string[] = [];
  for (const row of rows.slice(0, limit)) {
    if (bytes >= PAGE_BYTES) break;
    bytes += row.bytes;
    fitting.push(row.id);
  }
  return fitting;
}

/** What orders a list. */
export interface ListedAt {
  /** In milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly id: string;
}

export interface ListPage {
  readonly limit: number;
  /** Where the page before ended. */
  readonly after: ListedAt | undefined;
  /** Returns the members of the response besides its list. */
  readonly membersAfter: (last: ListedAt | undefined, hasMore: boolean) => { limit: number; nextCursor: string | null };
}

/**
 * Returns which page of a list a request asks for.
 *
 * @param list what the cursor belongs to: the list and its workspace
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseWholeList(query: QueryParameters, list: readonly string[]): ListPage {
  const { values, errors } = parseParameters(wholeListParameters, { fields: {}, documents: [] }, query);
  const { limit = LIMIT_MAX, cursor } = values;
  const found: InputError[] = [...errors];
  const place = readCursor(cursor, { list, sortKey, repeat: 'path' }, found);
  refuseErrors(found);
  return {
    limit,
    after: place && { createdAtMs: place[0], id: place[1] },
    membersAfter: (last, hasMore) => ({
      limit,
      nextCursor: last && hasMore ? encodeCursor(list, [last.createdAtMs, last.id]) : null,
    }),
  };
}
