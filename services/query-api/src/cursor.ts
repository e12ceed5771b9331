import { createHash } from 'node:crypto';
import { z } from 'zod';

/**
 * Returns a cursor: the position in one list after which the next page begins. It is base64url of JSON with a hash of
 * what defines the list (workspace, filters, order) and the key of the last record of the page. It is no secret and
 * grants no access.
 */
export function encodeCursor(list: unknown, position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify([hashOf(list), ...position])).toString('base64url');
}

/** Returns the position in a cursor; `undefined` if the cursor belongs to another list, or was altered. */
export function decodeCursor<Position extends z.ZodType>(
  cursor: string,
  list: unknown,
  position: Position,
): z.output<Position> | undefined {
  const bytes = Buffer.from(cursor, 'base64url');
  // Buffer.from skips characters that are not base64url; a cursor has one spelling only.
  if (bytes.toString('base64url') !== cursor) return undefined;
  const content = z.tuple([z.literal(hashOf(list))], z.unknown()).safeParse(parseJson(bytes.toString()));
  if (!content.success) return undefined;
  const result = position.safeParse(content.data.slice(1));
  return result.success ? result.data : undefined;
}

/** Returns a hash of JSON, in 16 characters. */
export function hashOf(list: unknown): string {
  return createHash('sha256').update(JSON.stringify(list)).digest('base64url').slice(0, 16);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
