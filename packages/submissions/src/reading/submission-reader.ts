import { isUtf8 } from 'node:buffer';
import { Problem } from '@sluice/shared/http/problem';
import type { z } from 'zod';
import { asProblem } from './body-problems.ts';
import {
  parseFieldName,
  parseFieldValue,
  parseName,
  parseSlice,
  parsingError,
  withoutByteOrderMark,
} from './body-slices.ts';
import { isText, parseEvent } from './event-parser.ts';
import { JsonCursor } from './json-cursor.ts';
import { encodeJson, errorOfMember } from './json-object.ts';
import type { JsonSlice } from './json-slice.ts';
import type { Pause } from './pause.ts';
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
import { SubmissionErrors } from './submission-errors.ts';
import { IDENTIFIER_LENGTH_MAX, type SubmissionLimits, TIMESTAMP_AHEAD_MS_MAX } from './submission-limits.ts';

export interface SubmissionReaderOptions extends SubmissionLimits {
  readonly schemas: SubmissionSchemas;
  /** The largest event, and the largest property, in bytes as sent, without white space between tokens. */
  readonly eventBytesMax: number;
}

/**
 * Reads and validates the bodies of submissions. It first finds where the parts of a body are, and then parses one event
 * and one property at a time. So neither memory nor the time between two pauses grows with the body.
 */
export class SubmissionReader {
  readonly #options: SubmissionReaderOptions;

  constructor(options: SubmissionReaderOptions) {
    this.#options = options;
  }

  /**
   * @param issues errors that were found before, to be named together with those of the body
   * @throws {Problem} `malformed_json`, `invalid_request` with every error, or `body_too_large` with every part that is
   */
  async read(
    bytes: Buffer,
    route: SubmissionRoute,
    issues: readonly z.core.$ZodIssue[],
    pause: Pause,
  ): Promise<Submission> {
    const { schemas, eventBytesMax } = this.#options;
    const body = withoutByteOrderMark(bytes);
    if (!isUtf8(body)) throw new Problem('malformed_json', 'The body is not UTF-8.');
    const errors = new SubmissionErrors();
    for (const issue of issues) errors.add(issue);
    try {
      const cursor = new JsonCursor(body);
      if (!cursor.atObject) {
        errors.check(schemas[route], parseFieldValue(body, cursor.skip()), []);
        cursor.end();
        throw errors.problem();
      }
      const outline = await readOutline(body, route, this.#options, errors, pause);
      const fields = readFields(body, outline, route, schemas, errors);
      const events = await this.#readEvents(body, outline, errors, pause);
      const properties = await this.#readProperties(body, outline, errors, pause);
      errors.throwIfAny(eventBytesMax);
      return { ...fields, events, properties };
    } catch (error) {
      throw asProblem(error);
    }
  }

  async #readEvents(
    body: Buffer,
    outline: SubmissionOutline,
    errors: SubmissionErrors,
    pause: Pause,
  ): Promise<SubmittedEvent[]> {
    const { schemas, eventBytesMax, eventsMax, now } = this.#options;
    const timestampMsMax = now() + TIMESTAMP_AHEAD_MS_MAX;
    const events: SubmittedEvent[] = [];
    if (!outline.events) return events;
    const { slices, count } = outline.events;
    if (count > eventsMax) errors.addAt(['events'], 'too_big', tooManyEvents(eventsMax));
    for (const [index, slice] of slices.entries()) {
      const waiting = pause();
      if (waiting) await waiting;
      if (slice.size > eventBytesMax) {
        errors.addTooLarge(`events.${index}`);
        continue;
      }
      const error = parsingError(slice);
      if (error !== undefined) {
        errors.addAt(['events', index], 'custom', error);
        continue;
      }
      const event =
        parseEvent(slice.members ?? parseSlice(body, slice), timestampMsMax) ??
        errors.check(schemas.event, parseSlice(body, slice), ['events', index]);
      if (event && errors.count === 0) events.push(event);
    }
    return events;
  }

  async #readProperties(
    body: Buffer,
    outline: SubmissionOutline,
    errors: SubmissionErrors,
    pause: Pause,
  ): Promise<SubmittedProperty[] | undefined> {
    const { eventBytesMax, propertiesMax } = this.#options;
    if (!outline.properties) return undefined;
    const { slices, tooMany } = outline.properties;
    if (tooMany) errors.addAt(['properties'], 'custom', tooManyProperties(propertiesMax));
    const properties: SubmittedProperty[] = [];
    // An error that several properties have is named once.
    const found = new Set<string>();
    for (const [name, slice] of slices) {
      const waiting = pause();
      if (waiting) await waiting;
      if (slice.size + Buffer.byteLength(name) > eventBytesMax) {
        errors.addTooLarge(`properties.${name.slice(0, 100)}`);
        continue;
      }
      const property = readProperty(body, name, slice);
      if (typeof property === 'string') found.add(property);
      else properties.push(property);
    }
    for (const error of found) errors.addAt(['properties'], 'custom', error);
    return properties;
  }
}

/** Returns the property, or its error. */
function readProperty(body: Buffer, name: string, slice: JsonSlice): SubmittedProperty | string {
  const parsing = parsingError(slice);
  if (parsing !== undefined) return parsing;
  const value = parseSlice(body, slice);
  const error = errorOfMember(name, value);
  return error ?? { name, json: value === null ? undefined : encodeJson(value) };
}

/** Returns the identifiers. What is wrong with them becomes errors. */
function readFields(
  body: Buffer,
  { fields }: SubmissionOutline,
  route: SubmissionRoute,
  schemas: SubmissionSchemas,
  errors: SubmissionErrors,
): Pick<Submission, 'subject' | 'userId' | 'groupId'> {
  const values: Record<string, unknown> = {};
  const names: readonly string[] = ROUTE_FIELDS[route];
  let valid = true;
  for (const [name, slice] of fields) values[name] = parseFieldValue(body, slice);
  for (const [name, value] of Object.entries(values)) {
    valid &&= isText(value, IDENTIFIER_LENGTH_MAX) && name !== 'events' && name !== 'properties';
  }
  // Only the first of a route's fields is required.
  const checked = valid && values[names[0] as string] !== undefined ? values : errors.check(schemas[route], values, []);
  const text = (name: string) => checked?.[name as keyof typeof checked] as string | undefined;
  return route === 'user'
    ? { subject: 'user', userId: text('foreignId'), groupId: undefined }
    : { subject: 'organization', userId: text('foreignUserId'), groupId: text('foreignUserGroupId') };
}

/** Where the parts of a body are. */
interface SubmissionOutline {
  /** The fields of the route; also `events` and `properties` when they do not have the type that they should have. */
  readonly fields: Map<string, JsonSlice>;
  /** `undefined` when they are absent, or no array. */
  events: { readonly slices: JsonSlice[]; count: number } | undefined;
  /** `undefined` when they are absent, or no object. */
  properties: { readonly slices: Map<string, JsonSlice>; tooMany: boolean } | undefined;
}

/**
 * Finds the parts of a body that is a JSON object. Of more events and properties than are allowed, it keeps only as many
 * as are. Unknown fields become errors.
 *
 * @throws {MalformedJson | SyntaxError}
 */
async function readOutline(
  body: Buffer,
  route: SubmissionRoute,
  { eventsMax, propertiesMax }: Pick<SubmissionLimits, 'eventsMax' | 'propertiesMax'>,
  errors: SubmissionErrors,
  pause: Pause,
): Promise<SubmissionOutline> {
  const known: readonly string[] = [...ROUTE_FIELDS[route], 'events', 'properties'];
  const cursor = new JsonCursor(body);
  const outline: SubmissionOutline = { fields: new Map(), events: undefined, properties: undefined };
  for (const nameSlice of cursor.members()) {
    const waiting = pause();
    if (waiting) await waiting;
    const name = parseFieldName(body, nameSlice);
    outline.fields.delete(name);
    if (name === 'events' && cursor.atArray) {
      outline.events = { slices: [], count: 0 };
      for (const event of cursor.elements()) {
        const waiting = pause();
        if (waiting) await waiting;
        outline.events.count += 1;
        if (outline.events.count <= eventsMax) outline.events.slices.push(event);
      }
    } else if (name === 'properties' && cursor.atObject) {
      outline.properties = { slices: new Map(), tooMany: false };
      const { slices } = outline.properties;
      for (const memberSlice of cursor.members()) {
        const waiting = pause();
        if (waiting) await waiting;
        const member = slices.size > propertiesMax ? undefined : parseName(body, memberSlice);
        const slice = cursor.skip();
        if (member !== undefined) slices.set(member, slice);
      }
      outline.properties.tooMany = slices.size > propertiesMax;
    } else {
      if (name === 'events') outline.events = undefined;
      if (name === 'properties') outline.properties = undefined;
      const slice = cursor.skip();
      if (known.includes(name)) outline.fields.set(name, slice);
      else errors.addUnknownField(name);
    }
  }
  cursor.end();
  return outline;
}
