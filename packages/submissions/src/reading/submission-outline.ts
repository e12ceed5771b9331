import { parseFieldName, parseName } from './body-slices.ts';
import { JsonCursor } from './json-cursor.ts';
import type { JsonSlice } from './json-slice.ts';
import type { Pause } from './pause.ts';
import { ROUTE_FIELDS, type SubmissionRoute } from './submission.ts';
import type { SubmissionErrors } from './submission-errors.ts';
import type { SubmissionLimits } from './submission-limits.ts';

/** Where the parts of a body are. */
export interface SubmissionOutline {
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
export async function readOutline(
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
