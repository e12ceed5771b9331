import type { Pause } from '../pause.ts';
import { parseFieldValue } from '../reading/body-slices.ts';
import { JsonCursor, MalformedJson } from '../reading/json-cursor.ts';
import type { JsonSlice } from '../reading/json-slice.ts';
import { userIdOf } from './call-parser.ts';

const NAME = Buffer.from('"userId"');

/** The longest way to write the name: each character as `\u0075`. */
const NAME_BYTES_MAX = 6 * (NAME.length - 2) + 2;

/**
 * Returns the user that a call names. The call is not parsed: it may be too large or too deep for that, or no JSON inside.
 * Then what stands before the error counts. `undefined` when it names nobody.
 */
export async function findUserId(body: Buffer, { start, end }: JsonSlice, pause: Pause): Promise<string | undefined> {
  const bytes = body.subarray(start, end);
  const cursor = new JsonCursor(bytes);
  let userId: string | undefined;
  if (!cursor.atObject) return undefined;
  try {
    for (const name of cursor.members()) {
      const waiting = pause();
      if (waiting) await waiting;
      const isUserId = isName(bytes, name);
      const value = cursor.skip();
      // Of a field that comes twice the last one counts.
      if (isUserId) userId = userIdOf(parse(bytes, value)) ?? userId;
    }
  } catch (error) {
    if (!(error instanceof MalformedJson)) throw error;
  }
  return userId;
}

/** Most names are told by their length: a large call may have a million. */
function isName(bytes: Buffer, slice: JsonSlice): boolean {
  const length = slice.end - slice.start;
  if (length === NAME.length) return bytes.compare(NAME, 0, NAME.length, slice.start, slice.end) === 0;
  return length > NAME.length && length <= NAME_BYTES_MAX && parse(bytes, slice) === 'userId';
}

/** Parses a name or the value of an identifier; `undefined` when it is no JSON. */
function parse(bytes: Buffer, slice: JsonSlice): unknown {
  try {
    return parseFieldValue(bytes, slice);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
