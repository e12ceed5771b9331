import { isUtf8 } from 'node:buffer';
import { asProblem, notJson } from '../../reading/body-problems.ts';
import { parseFieldName, parseFieldValue, withoutByteOrderMark } from '../../reading/body-slices.ts';
import { JsonCursor } from '../../reading/json-cursor.ts';
import type { JsonSlice } from '../../reading/json-slice.ts';
import type { Pause } from '../../reading/pause.ts';
import { type CallOutline, keyText, readCalls } from '../call-outline.ts';
import { KEY_PROPERTIES } from './posthog-properties.ts';

/**
 * Finds the events of a body of PostHog's clients: `{api_key, batch: [event, …]}`, one event, or an array of events.
 *
 * @throws {Problem} `malformed_json`, `body_too_large` with too many events
 */
export async function readPosthogOutline(bytes: Buffer, eventsMax: number, pause: Pause): Promise<CallOutline> {
  const body = withoutByteOrderMark(bytes);
  if (!isUtf8(body)) throw notJson();
  try {
    const { calls, key, sentAt } = await findEvents(body, eventsMax, pause);
    const writeKey = key ?? (await keyInEvent(body, calls[0], pause));
    return { body, calls, context: undefined, writeKey, sentAt };
  } catch (error) {
    throw asProblem(error);
  }
}

/** Finds the API key of a body that is no events, such as a request for flags. Throws as {@link readPosthogOutline} does. */
export async function readPosthogKey(bytes: Buffer, pause: Pause): Promise<string | undefined> {
  return (await readPosthogOutline(bytes, 1, pause)).writeKey;
}

interface FoundEvents {
  readonly calls: readonly JsonSlice[];
  readonly key?: string | undefined;
  readonly sentAt?: unknown;
}

/** When a client sent a request, by its own clock. posthog-python has the second name before version 7. */
const SENT_AT: readonly string[] = ['sent_at', 'sentAt'];

async function findEvents(body: Buffer, eventsMax: number, pause: Pause): Promise<FoundEvents> {
  const cursor = new JsonCursor(body);
  if (cursor.atArray) {
    const calls = await readCalls(cursor, eventsMax, pause);
    cursor.end();
    return { calls };
  }
  if (!cursor.atObject) {
    // Any other JSON is one event, which is rejected.
    return { calls: [single(body)] };
  }
  let calls: JsonSlice[] | undefined;
  let key: string | undefined;
  let sentAt: unknown;
  for (const nameSlice of cursor.members()) {
    const waiting = pause();
    if (waiting) await waiting;
    const name = parseFieldName(body, nameSlice);
    if (name === 'batch' && cursor.atArray) {
      calls = await readCalls(cursor, eventsMax, pause);
      continue;
    }
    const slice = cursor.skip();
    if (KEY_PROPERTIES.includes(name)) key ??= keyText(body, slice);
    if (SENT_AT.includes(name)) sentAt = parseFieldValue(body, slice);
  }
  cursor.end();
  return { calls: calls ?? [single(body)], key, sentAt };
}

function single(body: Buffer): JsonSlice {
  const cursor = new JsonCursor(body);
  const event = cursor.read();
  cursor.end();
  return event;
}

/** Returns the API key that an event has itself or in its properties. */
async function keyInEvent(body: Buffer, event: JsonSlice | undefined, pause: Pause): Promise<string | undefined> {
  if (event === undefined) return undefined;
  const { key, properties } = await keyInObject(body, event, pause);
  return key ?? (properties && (await keyInObject(body, properties, pause)).key);
}

interface FoundKey {
  readonly key?: string | undefined;
  /** Where the object has its properties. */
  readonly properties?: JsonSlice | undefined;
}

async function keyInObject(body: Buffer, object: JsonSlice, pause: Pause): Promise<FoundKey> {
  const bytes = body.subarray(object.start, object.end);
  const cursor = new JsonCursor(bytes);
  if (!cursor.atObject) return {};
  let key: string | undefined;
  let properties: JsonSlice | undefined;
  for (const nameSlice of cursor.members()) {
    const waiting = pause();
    if (waiting) await waiting;
    const name = parseFieldName(bytes, nameSlice);
    const slice = cursor.skip();
    if (KEY_PROPERTIES.includes(name)) key ??= keyText(bytes, slice);
    if (name === 'properties') {
      properties = { ...slice, start: object.start + slice.start, end: object.start + slice.end };
    }
  }
  return { key, properties };
}
