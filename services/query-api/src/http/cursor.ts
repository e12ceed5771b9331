import { createHash } from 'node:crypto';
import type { InputError } from '@sluice/shared/http/problem';
import { z } from 'zod';

/**
 * Returns a cursor: the sort key in one list, after which the next page begins. It is base64url of JSON with a hash of
 * what defines the list (workspace, filters, order) and the key of the last record of the page. It is no secret and
 * grants no access.
 */
export function encodeCursor(list: unknown, sortKey: readonly (string | number)[]): string {
  return tokenOf([hashOf(list), ...sortKey]);
}

/** Returns the sort key in a cursor; `undefined` if the cursor belongs to another list, or was altered. */
function decodeCursor<SortKey extends z.ZodType>(
  cursor: string,
  list: unknown,
  sortKey: SortKey,
): z.output<SortKey> | undefined {
  const content = z.tuple([z.literal(hashOf(list))], z.unknown()).safeParse(parseToken(cursor));
  if (!content.success) return undefined;
  const result = sortKey.safeParse(content.data.slice(1));
  return result.success ? result.data : undefined;
}

/**
 * Returns the sort key in a cursor, if one is given; adds an error if it belongs to another list. With an earlier error, as in a
 * filter or the order, there is no list that it could belong to.
 *
 * @param repeat what of the query a page has to repeat
 */
export function readCursor<SortKey extends z.ZodType>(
  cursor: string | undefined,
  { list, sortKey, repeat }: { readonly list: unknown; readonly sortKey: SortKey; readonly repeat: string },
  errors: InputError[],
): z.output<SortKey> | undefined {
  if (cursor === undefined || errors.length > 0) return undefined;
  const place = decodeCursor(cursor, list, sortKey);
  if (place === undefined) {
    const message = `this cursor belongs to another query; repeat its ${repeat}`;
    errors.push({ path: 'cursor', code: 'invalid', message });
  }
  return place;
}

/** Returns a hash of JSON, in 16 characters. */
export function hashOf(list: unknown): string {
  return createHash('sha256').update(JSON.stringify(list)).digest('base64url').slice(0, 16);
}

/** Returns JSON as base64url. */
export function tokenOf(content: unknown): string {
  return Buffer.from(JSON.stringify(content)).toString('base64url');
}

/** Returns the content of a {@link tokenOf}; `undefined` when the text is none. */
export function parseToken(token: string): unknown {
  const bytes = Buffer.from(token, 'base64url');
  // Buffer.from skips characters that are not base64url; a token has one spelling only.
  if (bytes.toString('base64url') !== token) return undefined;
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}
