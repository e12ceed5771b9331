import { EVENT_IDENTIFIERS, type EventIdentifier } from '@sluice/shared/rows/event-identifiers';
import { parseTimestamp } from '@sluice/shared/text/timestamp';
import { z } from 'zod';
import { encodeJson, jsonObject } from './json-object.ts';
import {
  EVENT_NAME_LENGTH_MAX,
  IDEMPOTENCY_KEY_LENGTH_MAX,
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
      const error = textError(value, max);
      if (error) context.addIssue({ code: 'custom', message: error });
    })
    .meta({ minLength: 1, maxLength: max, description });
}

/** Returns why a value is no such text; `undefined` when it is one. */
export function textError(value: string, max: number): string | undefined {
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

/** An identifier that the producer chooses, of a user, an organization and so on. */
function identifier(description: string) {
  return text(IDENTIFIER_LENGTH_MAX, description);
}

/** The request header from which events without `uuid` get one. */
export const idempotencyKey = z
  .string()
  .regex(
    new RegExp(`^[\\x21-\\x7e]{1,${IDEMPOTENCY_KEY_LENGTH_MAX}}$`),
    `must be 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} visible ASCII characters`,
  )
  .optional()
  .meta({
    description:
      'Events without `uuid` get one that is derived from the workspace, this key, their position and their content, so that the whole request can be sent again.',
  });

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

/** The query parameters of a deletion: exactly one of the identifiers. */
export const deletionParameters = {
  foreignId: identifier(
    'The user; an unknown one is accepted as well. Write a plus as `%2B`, and a space as `%20`.',
  ).optional(),
  anonymousId: identifier(
    'Instead of `foreignId`: the anonymous visitor. Its events without a user are deleted, those of a user stay.',
  ).optional(),
  before: timestamp
    .meta({
      description:
        'Delete what was accepted up to this time; default: now. A time in the future is now. Send it when a deletion is sent again, so that what was accepted since the first attempt stays.',
    })
    .optional(),
} as const;

/** Whose an anonymous visitor is. */
export const identityFields = {
  anonymousId: identifier('The anonymous visitor; an unknown one is accepted as well.'),
  userId: identifier('The user; an unknown one is accepted as well.'),
} as const;

/** Which of two users becomes the other one. */
export const mergeFields = {
  userId: identifier('The user that becomes the other one; an unknown one is accepted as well.'),
  into: identifier('The user that it becomes.'),
} as const;

const uuid = z
  .uuid('must be a UUID')
  .transform((value) => value.toLowerCase())
  .meta({ description: 'Tells a repeat from a new event; a UUIDv7 is best. Default: a new one.' });

/** Rows hold the objects of an event as JSON text. */
const jsonText = jsonObject.transform(encodeJson);

const eventIdentifiers = Object.fromEntries(
  EVENT_IDENTIFIERS.map(({ field, identifies }) => [
    field,
    optional(identifier(`The identifier of the ${identifies}.`)),
  ]),
) as Record<EventIdentifier, ReturnType<typeof optional<ReturnType<typeof identifier>>>>;

function eventSchema(now: () => number) {
  return z
    .strictObject({
      event: text(EVENT_NAME_LENGTH_MAX, 'The name of the event.'),
      type: optional(z.literal('track')),
      uuid: optional(uuid),
      timestamp: optional(timestamp),
      ...eventIdentifiers,
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
 * The schemas of the bodies of the two submit routes; see docs/guide/api.md. They decide what is valid and name what is not.
 * The submission reader uses them only for what it does not know to be valid, because it is several times faster.
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
  /** It counts only while nothing else sets the property, and the first of several wins. */
  readonly once?: true;
}

/** A valid body of either route: events, and properties of the entity `subject`. */
export interface Submission {
  readonly subject: 'user' | 'organization';
  readonly userId: string | undefined;
  readonly groupId: string | undefined;
  readonly events: readonly SubmittedEvent[];
  /** `undefined` when the body has none, which differs from an empty object. */
  readonly properties: readonly SubmittedProperty[] | undefined;
}
