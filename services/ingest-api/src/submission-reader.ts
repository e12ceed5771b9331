import { isUtf8 } from 'node:buffer';
import { FAULTS_MAX, invalidRequest, Problem } from '@sluice/shared/http/problem';
import { parseExactJson } from '@sluice/shared/json';
import type { z } from 'zod';
import { isText, parseEvent } from './event-parser.ts';
import { JsonCursor, type JsonSlice, MalformedJson } from './json-cursor.ts';
import { encodeJson, faultOfMember, TOO_DEEP } from './json-object.ts';
import {
  ROUTE_FIELDS,
  type Submission,
  type SubmissionRoute,
  type SubmissionSchemas,
  type SubmittedEvent,
  type SubmittedProperty,
  tooManyEvents,
  tooManyProperties,
} from './submission.ts';
import {
  IDENTIFIER_LENGTH_MAX,
  JSON_VALUES_MAX,
  type SubmissionLimits,
  TIMESTAMP_AHEAD_MS_MAX,
} from './submission-limits.ts';
import type { Pause } from './turns.ts';

export interface SubmissionReaderOptions extends SubmissionLimits {
  readonly schemas: SubmissionSchemas;
  /** The size of an event as it is sent, and of a property, without white space between tokens. */
  readonly eventBytesMax: number;
}

export interface SubmissionReader {
  /**
   * Reads a body an event and a property at a time, so that neither memory nor the time between two pauses grows with
   * the body.
   *
   * @param faults faults that were found before, to be named with those of the body
   * @throws {Problem} `malformed_json`, `invalid_request` with every fault, or `body_too_large` with every part that is
   */
  read(body: Buffer, route: SubmissionRoute, faults: readonly z.core.$ZodIssue[], pause: Pause): Promise<Submission>;
}

/** A field with more bytes is not parsed: as a text, whatever its escapes, it is longer than an identifier may be. */
const FIELD_BYTES_MAX = 12 * IDENTIFIER_LENGTH_MAX + 2;

/** A value with more levels is not parsed: it has a fault, and the exact parser recurses. */
const DEPTH_PARSED_MAX = 500;

/** Why a part of a body is not parsed, which would take too much memory or time; `undefined` when it is. */
function faultOf({ depth, values }: JsonSlice): string | undefined {
  if (depth > DEPTH_PARSED_MAX) return TOO_DEEP;
  return values > JSON_VALUES_MAX ? `holds more than ${JSON_VALUES_MAX} values` : undefined;
}

/** Where the parts of a body stand. */
interface Outline {
  /** The fields that the route has; also `events` and `properties` when they are of another type than they should be. */
  readonly fields: Map<string, JsonSlice>;
  /** `undefined` when they are absent, or no array. */
  events: { readonly slices: JsonSlice[]; count: number } | undefined;
  /** `undefined` when they are absent, or no object. */
  properties: { readonly slices: Map<string, JsonSlice>; tooMany: boolean } | undefined;
}

export function createSubmissionReader(options: SubmissionReaderOptions): SubmissionReader {
  const { schemas, eventBytesMax, eventsMax, propertiesMax, now } = options;

  async function readEvents(body: Buffer, outline: Outline, faults: Faults, pause: Pause): Promise<SubmittedEvent[]> {
    const events: SubmittedEvent[] = [];
    if (!outline.events) return events;
    const { slices, count } = outline.events;
    if (count > eventsMax) faults.add(issue(['events'], 'too_big', tooManyEvents(eventsMax)));
    const timestampMsMax = now() + TIMESTAMP_AHEAD_MS_MAX;
    for (const [index, slice] of slices.entries()) {
      const waiting = pause();
      if (waiting) await waiting;
      if (slice.size > eventBytesMax) {
        faults.tooLarge.push(`events.${index}`);
        continue;
      }
      const fault = faultOf(slice);
      if (fault !== undefined) {
        faults.add(issue(['events', index], 'custom', fault));
        continue;
      }
      const value = parseSlice(body, slice);
      const event = parseEvent(value, timestampMsMax) ?? faults.check(schemas.event, value, ['events', index]);
      if (event && faults.count === 0) events.push(event);
    }
    return events;
  }

  async function readProperties(
    body: Buffer,
    outline: Outline,
    faults: Faults,
    pause: Pause,
  ): Promise<SubmittedProperty[] | undefined> {
    if (!outline.properties) return undefined;
    const { slices, tooMany } = outline.properties;
    if (tooMany) faults.add(issue(['properties'], 'custom', tooManyProperties(propertiesMax)));
    const properties: SubmittedProperty[] = [];
    const found = new Set<string>();
    for (const [name, slice] of slices) {
      const waiting = pause();
      if (waiting) await waiting;
      if (slice.size + Buffer.byteLength(name) > eventBytesMax) {
        faults.tooLarge.push(`properties.${name.slice(0, 100)}`);
        continue;
      }
      let fault = faultOf(slice);
      if (fault === undefined) {
        const value = parseSlice(body, slice);
        fault = faultOfMember(name, value);
        if (fault === undefined) properties.push({ name, json: value === null ? undefined : encodeJson(value) });
      }
      if (fault !== undefined) found.add(fault);
    }
    for (const fault of found) faults.add(issue(['properties'], 'custom', fault));
    return properties;
  }

  /** Finds the parts of the body; of more events and properties than are allowed only as many as are. */
  async function outlineOf(body: Buffer, route: SubmissionRoute, faults: Faults, pause: Pause): Promise<Outline> {
    const known: readonly string[] = [...ROUTE_FIELDS[route], 'events', 'properties'];
    const cursor = new JsonCursor(body);
    const outline: Outline = { fields: new Map(), events: undefined, properties: undefined };
    for (const nameSlice of cursor.members()) {
      const waiting = pause();
      if (waiting) await waiting;
      const name = nameOf(body, nameSlice);
      outline.fields.delete(name);
      if (name === 'events' && cursor.atArray) {
        outline.events = { slices: [], count: 0 };
        for (const slice of cursor.elements()) {
          const waiting = pause();
          if (waiting) await waiting;
          outline.events.count += 1;
          if (outline.events.count <= eventsMax) outline.events.slices.push(slice);
        }
      } else if (name === 'properties' && cursor.atObject) {
        outline.properties = { slices: new Map(), tooMany: false };
        const { slices } = outline.properties;
        for (const memberSlice of cursor.members()) {
          const waiting = pause();
          if (waiting) await waiting;
          const member = slices.size > propertiesMax ? undefined : nameOf(body, memberSlice);
          const slice = cursor.skip();
          if (member !== undefined) slices.set(member, slice);
        }
        outline.properties.tooMany = slices.size > propertiesMax;
      } else {
        if (name === 'events') outline.events = undefined;
        if (name === 'properties') outline.properties = undefined;
        const slice = cursor.skip();
        if (known.includes(name)) outline.fields.set(name, slice);
        else faults.addUnknownField(name);
      }
    }
    cursor.end();
    return outline;
  }

  return {
    async read(bytes, route, known, pause) {
      const body = withoutByteOrderMark(bytes);
      if (!isUtf8(body)) throw new Problem('malformed_json', 'The body is not UTF-8.');
      const faults = new Faults();
      for (const fault of known) faults.add(fault);
      try {
        const cursor = new JsonCursor(body);
        if (!cursor.atObject) {
          faults.check(schemas[route], smallValue(body, cursor.skip()), []);
          cursor.end();
          throw faults.problem();
        }
        const outline = await outlineOf(body, route, faults, pause);
        const fields = readFields(body, outline, route, schemas, faults);
        const events = await readEvents(body, outline, faults, pause);
        const properties = await readProperties(body, outline, faults, pause);
        faults.throwIfAny(eventBytesMax);
        return { ...fields, events, properties };
      } catch (error) {
        if (!(error instanceof MalformedJson || error instanceof SyntaxError)) throw error;
        throw new Problem('malformed_json', 'The body is not JSON.', { cause: error });
      }
    },
  };
}

/** The identifiers; what is wrong with them becomes faults. */
function readFields(
  body: Buffer,
  { fields }: Outline,
  route: SubmissionRoute,
  schemas: SubmissionSchemas,
  faults: Faults,
): Pick<Submission, 'subject' | 'userId' | 'groupId'> {
  const values: Record<string, unknown> = {};
  const names: readonly string[] = ROUTE_FIELDS[route];
  let valid = true;
  for (const [name, slice] of fields) values[name] = smallValue(body, slice);
  for (const [name, value] of Object.entries(values)) {
    valid &&= isText(value, IDENTIFIER_LENGTH_MAX) && name !== 'events' && name !== 'properties';
  }
  // Only the first of a route's fields is required.
  const checked = valid && values[names[0] as string] !== undefined ? values : faults.check(schemas[route], values, []);
  const text = (name: string) => checked?.[name as keyof typeof checked] as string | undefined;
  return route === 'user'
    ? { subject: 'user', userId: text('foreignId'), groupId: undefined }
    : { subject: 'organization', userId: text('foreignUserId'), groupId: text('foreignUserGroupId') };
}

/** The faults of a body; of very many only some are kept. */
class Faults {
  count = 0;
  readonly tooLarge: string[] = [];
  readonly #issues: z.core.$ZodIssue[] = [];

  add(fault: z.core.$ZodIssue): void {
    this.count += fault.code === 'unrecognized_keys' ? fault.keys.length : 1;
    if (this.#issues.length < FAULTS_MAX) this.#issues.push(fault);
  }

  addUnknownField(name: string): void {
    this.add({ code: 'unrecognized_keys', keys: [name], path: [], message: 'is not known' });
  }

  /** What the schema makes of the value; `undefined` when it finds faults. */
  check<Schema extends z.ZodType>(
    schema: Schema,
    value: unknown,
    path: readonly PropertyKey[],
  ): z.output<Schema> | undefined {
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    for (const fault of result.error.issues) this.add({ ...fault, path: [...path, ...fault.path] });
    return undefined;
  }

  problem(): Problem {
    return invalidRequest(this.#issues, this.count);
  }

  throwIfAny(eventBytesMax: number): void {
    if (this.count > 0) throw this.problem();
    if (this.tooLarge.length === 0) return;
    const message = `must be at most ${eventBytesMax} bytes as JSON`;
    const errors = this.tooLarge.slice(0, FAULTS_MAX).map((path) => ({ path, code: 'too_large', message }));
    throw new Problem('body_too_large', 'A part of the body is too large.', { errors });
  }
}

function issue(path: readonly PropertyKey[], code: 'custom' | 'too_big', message: string): z.core.$ZodIssue {
  return { code, path: [...path], message, input: undefined } as z.core.$ZodIssue;
}

function withoutByteOrderMark(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

function nameOf(body: Buffer, { start, end }: JsonSlice): string {
  return JSON.parse(body.toString('utf8', start, end)) as string;
}

/** @throws {SyntaxError} */
function parseSlice(body: Buffer, { start, end, needsExactParser }: JsonSlice): unknown {
  const text = body.toString('utf8', start, end);
  return needsExactParser ? parseExactJson(text) : JSON.parse(text);
}

/** The value, or in place of one that is too large for any field another that has the same fault. */
function smallValue(body: Buffer, slice: JsonSlice): unknown {
  if (slice.size <= FIELD_BYTES_MAX && faultOf(slice) === undefined) return parseSlice(body, slice);
  switch (body[slice.start]) {
    case 0x22:
      return ' '.repeat(FIELD_BYTES_MAX);
    case 0x5b:
      return [];
    case 0x7b:
      return {};
    default:
      return 0;
  }
}
