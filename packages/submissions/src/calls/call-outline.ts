import { isUtf8 } from 'node:buffer';
import { Problem } from '@sluice/shared/http/problem';
import { asProblem, notJson } from '../reading/body-problems.ts';
import {
  parseFieldName,
  parseFieldValue,
  parseSlice,
  parsingError,
  withoutByteOrderMark,
} from '../reading/body-slices.ts';
import { JsonCursor } from '../reading/json-cursor.ts';
import { isJsonObject } from '../reading/json-object.ts';
import type { JsonSlice } from '../reading/json-slice.ts';
import type { Pause } from '../reading/pause.ts';
import type { CallRoute } from './call.ts';
import { isEmptyArray } from './call-parser.ts';

/** Where the calls of a body are. */
export interface CallOutline {
  /** Without a byte order mark. */
  readonly body: Buffer;
  readonly calls: readonly JsonSlice[];
  /** What lies under the context of each call; `undefined` when there is none. */
  readonly context: JsonSlice | undefined;
  /** The API key in the body: its own, else that of its first call. */
  readonly writeKey: string | undefined;
  /** When the client sent the batch by its own clock, as it says it. */
  readonly sentAt?: unknown;
}

/** A key is not longer; what is, is no key. */
export const WRITE_KEY_BYTES_MAX = 1_024;

/**
 * Finds the calls of a body: the elements of `batch`, or the body itself on a route of one type. Unknown fields are
 * ignored.
 *
 * @throws {Problem} `malformed_json`, `invalid_request` when there is no batch, `body_too_large` with too many calls
 */
export async function readCallOutline(
  bytes: Buffer,
  route: CallRoute,
  callsMax: number,
  pause: Pause,
): Promise<CallOutline> {
  const body = withoutByteOrderMark(bytes);
  if (!isUtf8(body)) throw notJson();
  try {
    return route === 'batch' ? await readBatch(body, callsMax, pause) : await readSingle(body, pause);
  } catch (error) {
    throw asProblem(error);
  }
}

async function readSingle(body: Buffer, pause: Pause): Promise<CallOutline> {
  const cursor = new JsonCursor(body);
  const call = cursor.read();
  cursor.end();
  return { body, calls: [call], context: undefined, writeKey: await writeKeyOf(body, call, pause) };
}

async function readBatch(body: Buffer, callsMax: number, pause: Pause): Promise<CallOutline> {
  const cursor = new JsonCursor(body);
  if (!cursor.atObject) throw noBatch();
  let calls: JsonSlice[] | undefined;
  let context: JsonSlice | undefined;
  let writeKey: string | undefined;
  let sentAt: unknown;
  for (const nameSlice of cursor.members()) {
    const waiting = pause();
    if (waiting) await waiting;
    const name = parseFieldName(body, nameSlice);
    if (name === 'batch' && cursor.atArray) {
      calls = await readCalls(cursor, callsMax, pause);
      continue;
    }
    const slice: JsonSlice = cursor.skip();
    if (name === 'batch') calls = undefined;
    if (name === 'context') context = isNull(body, slice) ? undefined : slice;
    if (name === 'writeKey') writeKey = keyText(body, slice);
    if (name === 'sentAt') sentAt = parseFieldValue(body, slice);
  }
  cursor.end();
  if (!calls) throw noBatch();
  return { body, calls, context, writeKey: writeKey ?? (await writeKeyOf(body, calls[0], pause)), sentAt };
}

/** Finds the calls of an array, at which the cursor is. @throws {Problem} `body_too_large` with too many */
export async function readCalls(cursor: JsonCursor, callsMax: number, pause: Pause): Promise<JsonSlice[]> {
  const calls: JsonSlice[] = [];
  for (const call of cursor.elements()) {
    const waiting = pause();
    if (waiting) await waiting;
    calls.push(call);
    if (calls.length > callsMax) throw tooManyCalls(callsMax);
  }
  return calls;
}

async function writeKeyOf(body: Buffer, call: JsonSlice | undefined, pause: Pause): Promise<string | undefined> {
  if (!call || (call.members && !Object.hasOwn(call.members, 'writeKey'))) return undefined;
  const bytes = body.subarray(call.start, call.end);
  const cursor = new JsonCursor(bytes);
  if (!cursor.atObject) return undefined;
  let key: string | undefined;
  for (const name of cursor.members()) {
    const waiting = pause();
    if (waiting) await waiting;
    const isKey = parseFieldName(bytes, name) === 'writeKey';
    const slice = cursor.skip();
    if (isKey) key = keyText(bytes, slice);
  }
  return key;
}

/** Returns the API key that a value is; what is none becomes a text that is no key. `null` and an empty text count as absent. */
export function keyText(body: Buffer, slice: JsonSlice): string | undefined {
  if (slice.size > WRITE_KEY_BYTES_MAX || slice.depth > 0) return ' ';
  const value = parseSlice(body, slice);
  if (value === null || value === '') return undefined;
  return typeof value === 'string' ? value : ' ';
}

/** Parses the context of a batch. Returns a text that says why it cannot be used. */
export function parseBatchContext({ body, context }: CallOutline): Readonly<Record<string, unknown>> | string {
  if (!context) return {};
  const error = parsingError(context);
  if (error !== undefined) return `The context of the batch ${error}.`;
  const value = parseSlice(body, context);
  if (isEmptyArray(value)) return {};
  return isJsonObject(value) ? value : 'The context of the batch must be an object.';
}

function isNull(body: Buffer, { start, end }: JsonSlice): boolean {
  return end - start === 4 && body[start] === 0x6e;
}

function noBatch(): Problem {
  const errors = [{ path: 'batch', code: 'invalid_type', message: 'must be an array of calls' }];
  return new Problem('invalid_request', 'The body has no batch.', { errors });
}

function tooManyCalls(callsMax: number): Problem {
  return new Problem('body_too_large', `A batch must hold at most ${callsMax} calls.`);
}
