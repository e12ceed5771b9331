import { parseTimestamp } from '@sluice/shared/timestamp';
import { z } from 'zod';
import { encodeJson, jsonObject } from './json-object.ts';
import {
  EVENT_NAME_LENGTH_MAX,
  IDENTIFIER_LENGTH_MAX,
  type SubmissionLimits,
  TIMESTAMP_AHEAD_MS_MAX,
  TIMESTAMP_MS_MIN,
  uuidV7TimeMs,
} from './submission-limits.ts';

/** A non-empty string of at most `max` Unicode code points, without lone surrogates, which UTF-8 cannot hold. */
function text(max: number, description: string) {
  return z
    .string()
    .superRefine((value, context) => {
      const fault = textFault(value, max);
      if (fault) context.addIssue({ code: 'custom', message: fault });
    })
    .meta({ minLength: 1, maxLength: max, description });
}

function textFault(value: string, max: number): string | undefined {
  if (value === '') return 'must not be empty';
  if (!value.isWellFormed()) return 'holds a lone surrogate, which is not Unicode text';
  if (value.length > 2 * max || (value.length > max && [...value].length > max))
    return `must be at most ${max} characters`;
  return undefined;
}

/** `null` counts as absent. */
function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** A caller-chosen identifier of a user, an organization and so on. */
export function identifier(description: string) {
  return text(IDENTIFIER_LENGTH_MAX, description);
}

/** A request header: events without `uuid` get one from it. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, 'must be 1 to 200 visible ASCII characters')
  .optional()
  .meta({
    description:
      'Gives events without `uuid` one made from the workspace, this key and their position, so that the whole request can be repeated.',
  });

/** The query of a user's deletion. */
export const deletionParameters = { foreignId: identifier('The user; an unknown one is accepted as well.') } as const;

const timestamp = z
  .string()
  .transform((value, context) => {
    const parsed = parseTimestamp(value);
    if (parsed) return parsed.ms;
    context.addIssue({ code: 'custom', message: 'must be an ISO 8601 timestamp, such as 2026-03-01T12:00:00.000Z' });
    return z.NEVER;
  })
  .meta({
    description:
      'ISO 8601, in UTC when it has no zone; from 2000-01-01 to one day from now. Default: the time inside a UUIDv7, else the time of receipt.',
  });

const uuid = z
  .uuid('must be a UUID')
  .transform((value) => value.toLowerCase())
  .meta({ description: 'Tells a repeat from a new event; a UUIDv7 is best. Without it one is made.' });

/** Of an event only the text of an object is needed. */
const jsonText = jsonObject.transform(encodeJson);

function eventSchema(now: () => number) {
  return z
    .strictObject({
      event: text(EVENT_NAME_LENGTH_MAX, 'The name of the event.'),
      type: optional(z.literal('track')),
      uuid: optional(uuid),
      timestamp: optional(timestamp),
      anonymousId: optional(identifier('An identifier of somebody who is not known yet.')),
      instanceId: optional(identifier('An identifier of an installation or a device.')),
      properties: optional(jsonText),
      context: optional(jsonText),
      traits: optional(jsonText),
    })
    .superRefine((event, context) => {
      const ms = event.timestamp ?? uuidV7TimeMs(event.uuid);
      if (ms === undefined || (ms >= TIMESTAMP_MS_MIN && ms <= now() + TIMESTAMP_AHEAD_MS_MAX)) return;
      const message = 'must be between 2000-01-01 and one day from now';
      if (event.timestamp !== undefined) context.addIssue({ code: 'custom', path: ['timestamp'], message });
      else context.addIssue({ code: 'custom', path: ['uuid'], message: `the time in this UUIDv7 ${message}` });
    })
    .meta({ id: 'Event' });
}

/** The fields of a submission besides its events and properties, by route. */
export const ROUTE_FIELDS = {
  userGroup: ['foreignUserGroupId', 'foreignUserId'],
  user: ['foreignId'],
} as const;

export type SubmissionRoute = keyof typeof ROUTE_FIELDS;

/**
 * The bodies of the two submit routes; see docs/api.md. They say what is valid and what is wrong. `readSubmission` asks
 * them only about what it does not know to be valid.
 */
export function submissionSchemas({ eventsMax, propertiesMax, now }: SubmissionLimits) {
  const event = eventSchema(now);
  const shared = {
    events: optional(z.array(event).max(eventsMax, tooManyEvents(eventsMax))),
    properties: optional(
      jsonObject
        .refine((object) => Object.keys(object).length <= propertiesMax, tooManyProperties(propertiesMax))
        .meta({
          type: 'object',
          maxProperties: propertiesMax,
          description:
            'Merged into what is there: a name that is left out keeps its value, `null` removes it. Any JSON values.',
        }),
    ),
  };
  const foreignUserGroupId = identifier('The organization; an unknown one is created.');
  const userId = identifier('The user; an unknown one is created.');
  const userGroup = z
    .strictObject({ foreignUserGroupId, foreignUserId: optional(userId), ...shared })
    .meta({ id: 'UserGroupSubmission' });
  const user = z.strictObject({ foreignId: userId, ...shared }).meta({ id: 'UserSubmission' });
  return { userGroup, user, event };
}

export type SubmissionSchemas = ReturnType<typeof submissionSchemas>;

export function tooManyEvents(max: number): string {
  return `must hold at most ${max} events`;
}

export function tooManyProperties(max: number): string {
  return `must hold at most ${max} properties`;
}

export type SubmittedEvent = z.output<ReturnType<typeof eventSchema>>;

/** A property to set, or to remove when it has no value. */
export interface SubmittedProperty {
  readonly name: string;
  /** The value as JSON text. */
  readonly json: string | undefined;
}

/** A valid body of either route: events, and properties of the entity that `subject` names. */
export interface Submission {
  readonly subject: 'user' | 'organization';
  readonly userId: string | undefined;
  readonly groupId: string | undefined;
  readonly events: readonly SubmittedEvent[];
  /** `undefined` when the body has none, which is not the same as an empty object. */
  readonly properties: readonly SubmittedProperty[] | undefined;
}
