import { isUtf8 } from 'node:buffer';
import { Problem } from '@sluice/shared/http/problem';
import { asProblem, notJson } from '../not-json.ts';
import type { Pause } from '../pause.ts';
import { parseFieldName, parseSlice, parsingFault, withoutByteOrderMark } from '../reading/body-slices.ts';
import type { CanonicalLimits } from '../reading/canonical-reader.ts';
import { type ElementReader, JsonCursor, type JsonSlice } from '../reading/json-cursor.ts';
import { isJsonObject } from '../reading/json-object.ts';
import type { Call, CallRoute } from './call.ts';
import { CanonicalCalls } from './canonical-calls.ts';

/** Where the calls of a body are. */
export interface CallOutline {
  /** Without a byte order mark. */
  readonly body: Buffer;
  /** Calls that could be read without parsing them, and where the others are. */
  readonly calls: readonly (Call | JsonSlice)[];
  /** What lies under the context of each call; `undefined` when there is none. */
  readonly context: JsonSlice | undefined;
  /** The API key in the body: its own, else that of its first call. */
  readonly writeKey: string | undefined;
}

export interface CallOutlineLimits extends CanonicalLimits {
  readonly callsMax: number;
}

/** Passes every element of an array, and reads none. */
const PASS_ALL: ElementReader<never> = { read: () => undefined, end: 0 };

/** A key is not longer; what is, is no key. */
export const WRITE_KEY_BYTES_MAX = 1_024;

/**
 * Finds the calls of a body, and reads those that need not be parsed: the elements of `batch`, or the body itself on a
 * route of one type. Unknown fields are ignored.
 *
 * @throws {Problem} `malformed_json`, `invalid_request` when there is no batch, `body_too_large` with too many calls
 */
export async function readCallOutline(
  bytes: Buffer,
  route: CallRoute,
  { callsMax, ...limits }: CallOutlineLimits,
  pause: Pause,
): Promise<CallOutline> {
  const body = withoutByteOrderMark(bytes);
  if (!isUtf8(body)) throw notJson();
  try {
    if (route !== 'batch') return await readSingle(body, pause);
    const outline = await readBatch(body, callsMax, new CanonicalCalls(body, limits), pause);
    // Such calls have to be parsed, because they get something of the context.
    return outline.context ? await readBatch(body, callsMax, PASS_ALL, pause) : outline;
  } catch (error) {
    throw asProblem(error);
  }
}

async function readSingle(body: Buffer, pause: Pause): Promise<CallOutline> {
  const cursor = new JsonCursor(body);
  const call = cursor.skip();
  cursor.end();
  return { body, calls: [call], context: undefined, writeKey: await writeKeyOf(body, call, pause) };
}

async function readBatch(
  body: Buffer,
  callsMax: number,
  reader: ElementReader<Call>,
  pause: Pause,
): Promise<CallOutline> {
  const cursor = new JsonCursor(body);
  if (!cursor.atObject) throw noBatch();
  let calls: (Call | JsonSlice)[] | undefined;
  let context: JsonSlice | undefined;
  let writeKey: string | undefined;
  for (const nameSlice of cursor.members()) {
    const waiting = pause();
    if (waiting) await waiting;
    const name = parseFieldName(body, nameSlice);
    if (name === 'batch' && cursor.atArray) {
      calls = [];
      for (const call of cursor.elements(reader)) {
        const waiting = pause();
        if (waiting) await waiting;
        calls.push(call);
        if (calls.length > callsMax) throw tooManyCalls(callsMax);
      }
      continue;
    }
    const slice: JsonSlice = cursor.skip();
    if (name === 'batch') calls = undefined;
    if (name === 'context') context = isNull(body, slice) ? undefined : slice;
    if (name === 'writeKey') writeKey = keyText(body, slice);
  }
  cursor.end();
  if (!calls) throw noBatch();
  return { body, calls, context, writeKey: writeKey ?? (await writeKeyOf(body, calls[0], pause)) };
}

/** A call that was read without parsing it has no key. */
async function writeKeyOf(body: Buffer, call: Call | JsonSlice | undefined, pause: Pause): Promise<string | undefined> {
  if (!call || 'type' in call) return undefined;
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

/** `null` and an empty text count as absent. */
function keyText(body: Buffer, slice: JsonSlice): string | undefined {
  if (slice.size > WRITE_KEY_BYTES_MAX || slice.depth > 0) return ' ';
  const value = parseSlice(body, slice);
  if (value === null || value === '') return undefined;
  return typeof value === 'string' ? value : ' ';
}

/** Parses the context of a batch. Returns a text that says why it cannot be used. */
export function parseBatchContext({ body, context }: CallOutline): Readonly<Record<string, unknown>> | string {
  if (!context) return {};
  const fault = parsingFault(context);
  if (fault !== undefined) return `The context of the batch ${fault}.`;
  const value = parseSlice(body, context);
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
