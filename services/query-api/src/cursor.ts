import { createHash } from 'node:crypto';
import { z } from 'zod';

/**
 * A cursor is a position in one list: base64url of JSON that holds a hash of what defines the list (workspace, filters,
 * order) and the key of the last record that was served. It is no secret, and grants nothing.
 */
export function encodeCursor(list: unknown, position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify([hashOf(list), ...position])).toString('base64url');
}

/** The position in a cursor, if it is one of this very list and has the form of `position`; `undefined` otherwise. */
export function decodeCursor<Position extends z.ZodType>(
  cursor: string,
  list: unknown,
  position: Position,
): z.output<Position> | undefined {
  const bytes = Buffer.from(cursor, 'base64url');
  // Buffer.from skips what is not base64url; a cursor has one spelling only.
  if (bytes.toString('base64url') !== cursor) return undefined;
  const content = z.tuple([z.literal(hashOf(list))], z.unknown()).safeParse(parseJson(bytes.toString()));
  if (!content.success) return undefined;
  const result = position.safeParse(content.data.slice(1));
  return result.success ? result.data : undefined;
}

function hashOf(list: unknown): string {
  return createHash('sha256').update(JSON.stringify(list)).digest('base64url').slice(0, 16);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
