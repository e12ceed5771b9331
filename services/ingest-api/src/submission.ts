import { parseTimestamp } from '@sluice/shared/timestamp';
import { z } from 'zod';
import { jsonObject } from './json-object.ts';

/** Events older than this are refused: 2000-01-01. */
export const TIMESTAMP_MS_MIN = Date.UTC(2000, 0, 1);

/** How far ahead of the server's clock an event may be: one day. */
export const TIMESTAMP_AHEAD_MS_MAX = 24 * 60 * 60 * 1_000;

const IDENTIFIER_LENGTH_MAX = 512;
const EVENT_NAME_LENGTH_MAX = 200;

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
  if (value.length > max && [...value].length > max) return `must be at most ${max} characters`;
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

function eventSchema(now: () => number) {
  return z
    .strictObject({
      event: text(EVENT_NAME_LENGTH_MAX, 'The name of the event.'),
      type: optional(z.literal('track')),
      uuid: optional(uuid),
      timestamp: optional(timestamp),
      anonymousId: optional(identifier('An identifier of somebody who is not known yet.')),
      instanceId: optional(identifier('An identifier of an installation or a device.')),
      properties: optional(jsonObject),
      context: optional(jsonObject),
      traits: optional(jsonObject),
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

/** The time inside a UUIDv7, in milliseconds since 1970; `undefined` for any other version (RFC 9562, section 5.7). */
export function uuidV7TimeMs(uuid: string | undefined): number | undefined {
  return uuid?.[14] === '7' ? Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16) : undefined;
}

export interface SubmissionLimits {
  readonly eventsMax: number;
  /** The server's clock, in milliseconds since 1970. */
  readonly now: () => number;
}

/** The bodies of the two submit routes; see docs/api.md. */
export function submissionSchemas({ eventsMax, now }: SubmissionLimits) {
  const events = z.array(eventSchema(now)).max(eventsMax, `must hold at most ${eventsMax} events`);
  const shared = {
    events: optional(events),
    properties: optional(
      jsonObject.meta({
        type: 'object',
        description:
          'Merged into what is there: a name that is left out keeps its value, `null` removes it. Any JSON values.',
      }),
    ),
  };
  const foreignUserGroupId = identifier('The organization; an unknown one is created.');
  const userId = identifier('The user; an unknown one is created.');
  return {
    userGroup: z
      .strictObject({ foreignUserGroupId, foreignUserId: optional(userId), ...shared })
      .meta({ id: 'UserGroupSubmission' }),
    user: z.strictObject({ foreignId: userId, ...shared }).meta({ id: 'UserSubmission' }),
  };
}

export type SubmittedEvent = z.output<ReturnType<typeof eventSchema>>;

/** A valid body of either route: events, and properties of the entity that `subject` names. */
export interface Submission {
  readonly subject: 'user' | 'organization';
  readonly userId: string | undefined;
  readonly groupId: string | undefined;
  readonly events: readonly SubmittedEvent[];
  readonly properties: Readonly<Record<string, unknown>> | undefined;
}
