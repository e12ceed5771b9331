import { createHash } from 'node:crypto';
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
export function decodeCursor<SortKey extends z.ZodType>(
  cursor: string,
  list: unknown,
  sortKey: SortKey,
): z.output<SortKey> | undefined {
  const content = z.tuple([z.literal(hashOf(list))], z.unknown()).safeParse(parseToken(cursor));
  if (!content.success) return undefined;
  const result = sortKey.safeParse(content.data.slice(1));
  return result.success ? result.data : undefined;
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
