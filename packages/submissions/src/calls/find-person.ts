import { parseFieldValue } from '../reading/body-slices.ts';
import { JsonCursor, MalformedJson } from '../reading/json-cursor.ts';
import type { JsonSlice } from '../reading/json-slice.ts';
import type { Pause } from '../reading/pause.ts';
import type { CallForm } from './call.ts';
import { userIdOf } from './call-parser.ts';

/** A name to look for, as most clients write it. */
interface Field {
  readonly name: string;
  readonly bytes: Buffer;
  /** The longest way to write it: each character as `\u0075`. */
  readonly bytesMax: number;
}

const USER_ID = [field('userId')];
const ANONYMOUS_ID = field('anonymousId');
const DISTINCT_IDS = [field('distinct_id'), field('$distinct_id')];
const PROPERTIES = field('properties');

function field(name: string): Field {
  return { name, bytes: Buffer.from(JSON.stringify(name)), bytesMax: 6 * name.length + 2 };
}

/** Whom a call names, as far as it does. */
export interface CallPerson {
  readonly userId?: string | undefined;
  readonly anonymousId?: string | undefined;
}

/**
 * Returns the user and the anonymous id that a call names. The call is not parsed: it may be too large or too deep for that, or
 * no JSON inside. Then what stands before the error counts.
 */
export async function findPerson(body: Buffer, slice: JsonSlice, form: CallForm, pause: Pause): Promise<CallPerson> {
  if (form !== 'posthog') return await findIn(body, slice, USER_ID, pause);
  // posthog-js has it in the properties alone. Of somebody who is not identified it names no user, and does no harm.
  const { userId, properties } = await findIn(body, slice, DISTINCT_IDS, pause);
  if (userId !== undefined || !properties) return { userId };
  return { userId: (await findIn(body, properties, DISTINCT_IDS, pause)).userId };
}

interface Found extends CallPerson {
  readonly properties?: Pick<JsonSlice, 'start' | 'end'> | undefined;
}

async function findIn(
  body: Buffer,
  { start, end }: Pick<JsonSlice, 'start' | 'end'>,
  wanted: readonly Field[],
  pause: Pause,
): Promise<Found> {
  const bytes = body.subarray(start, end);
  const cursor = new JsonCursor(bytes);
  let userId: string | undefined;
  let anonymousId: string | undefined;
  let properties: Found['properties'];
  if (!cursor.atObject) return {};
  try {
    for (const name of cursor.members()) {
      const waiting = pause();
      if (waiting) await waiting;
      const isUserId = wanted.some((field) => isName(bytes, name, field));
      const isAnonymousId = isName(bytes, name, ANONYMOUS_ID);
      const isProperties = isName(bytes, name, PROPERTIES);
      const value = cursor.skip();
      if (isProperties) properties = { start: start + value.start, end: start + value.end };
      // If a field comes twice, the last one counts.
      if (isUserId) userId = userIdOf(parse(bytes, value)) ?? userId;
      if (isAnonymousId) anonymousId = userIdOf(parse(bytes, value)) ?? anonymousId;
    }
  } catch (error) {
    if (!(error instanceof MalformedJson)) throw error;
  }
  return { userId, anonymousId, properties };
}

/** Most names are told by their length: a large call may have a million. */
function isName(bytes: Buffer, slice: JsonSlice, { name, bytes: plain, bytesMax }: Field): boolean {
  const length = slice.end - slice.start;
  if (length === plain.length) return bytes.compare(plain, 0, length, slice.start, slice.end) === 0;
  return length > plain.length && length <= bytesMax && parse(bytes, slice) === name;
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
