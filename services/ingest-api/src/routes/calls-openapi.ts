import type { OperationDescription, PathDescriptions } from '@sluice/shared/http/openapi';
import { CALL_TYPES, type CallRoute, type CallType } from '@sluice/submissions/calls/call';
import { z } from 'zod';
import { SETTINGS_PATHS, settingsFor, TELEMETRY_PATHS } from './client-settings.ts';
import { CALL_PATHS } from './post-calls.ts';

/** The problems of a request with events, besides those of its key. */
export const BODY_CODES = [
  'malformed_json',
  'body_too_slow',
  'body_too_large',
  'unsupported_media_type',
  'event_log_unavailable',
  'overloaded',
  'clock_skewed',
] as const;

const identifier = (description: string) =>
  z.union([z.string(), z.number(), z.boolean()]).nullish().meta({ description });
export const object = (description: string) => z.looseObject({}).nullish().meta({ description });

const call = z
  .looseObject({
    type: z.enum(CALL_TYPES).optional().meta({ description: 'Needed in a batch; other routes say it.' }),
    userId: identifier('One of userId, anonymousId, groupId and previousId is needed.'),
    anonymousId: identifier('An identifier of a person who is not known yet.'),
    groupId: identifier('The organization; `context.groupId` counts, too.'),
    previousId: identifier('`alias`: the identifier before; stored in `properties`.'),
    messageId: identifier('Tells a repeat from a new call. A UUID is the uuid of the event; of others one is derived.'),
    timestamp: z.union([z.string(), z.number()]).nullish().meta({
      description:
        'ISO 8601, or a number of seconds or milliseconds since 1970, up to one day from now. Default, also for one that cannot be read or is before 2000: `originalTimestamp`, else the time in the messageId, else the time of receipt.',
    }),
    event: z.string().nullish().meta({ description: '`track`: the name of the event.' }),
    name: z.string().nullish().meta({ description: '`page` and `screen`: the name of the event.' }),
    properties: object('Stored as they come.'),
    context: object('Stored as it comes. That of a batch lies under it, name by name.'),
    traits: object('`identify`: properties of the user. `group`: of the organization. `null` removes one.'),
  })
  .meta({ id: 'Call', description: 'A call of a client for Segment or RudderStack. Other fields are ignored.' });

const batch = z
  .looseObject({
    batch: z.array(call),
    context: object('Lies under the context of each call.'),
    writeKey: z.string().nullish().meta({ description: 'The API key, when it is sent in no other way.' }),
  })
  .meta({ id: 'CallBatch' });

/** Describes what a response says of what was rejected. @param what they are: `Calls` */
export function rejectedMembers(what: string) {
  return {
    rejected: z
      .array(z.object({ index: z.int(), code: z.enum(['invalid_call', 'too_large']), message: z.string() }))
      .optional()
      .meta({ description: `${what} that were not taken. They are kept as dead letters. At most the first 1,000.` }),
    rejectedCount: z.int().optional(),
  };
}

const acceptedCalls = z
  .object({
    success: z.literal(true),
    ...rejectedMembers('Calls'),
  })
  .meta({ id: 'AcceptedCalls' });

const source = z.object({ source: z.looseObject({ id: z.string(), enabled: z.boolean() }), updatedAt: z.string() });

const CALL_EXAMPLES: Readonly<Record<CallType, Readonly<Record<string, unknown>>>> = {
  track: { userId: 'jane', event: 'signed_up', properties: { plan: 'pro' }, messageId: 'a-1' },
  identify: { userId: 'jane', traits: { name: 'Jane', trial: null } },
  group: { userId: 'jane', groupId: 'acme', traits: { name: 'Acme' } },
  page: { anonymousId: 'visitor', name: 'Pricing', properties: { url: 'https://acme.example/pricing' } },
  screen: { anonymousId: 'visitor', name: 'Settings' },
  alias: { userId: 'jane', previousId: 'visitor' },
};

const BATCH_EXAMPLE = {
  batch: Object.entries(CALL_EXAMPLES).map(([type, fields]) => ({ type, ...fields })),
  context: { library: { name: 'example' } },
};

const KEY_PARAMETERS = {
  query: z.object({ writeKey: z.string().optional().meta({ description: 'The API key, for beacons.' }) }),
};

const KEY = `The API key is the token of \`Authorization: Bearer\`, the user name of \`Authorization: Basic\`, \`writeKey\` in the
query, or \`writeKey\` in the body. The first of them counts.`;

const DESCRIPTION = `For the clients of Segment and of RudderStack. ${KEY} The body is JSON, whatever its type, and may be compressed
with gzip without saying so. A call that cannot be taken does not keep the others from being taken.`;

/** The paths of calls, for the OpenAPI document. */
export const CALL_PATH_DESCRIPTIONS: PathDescriptions = {
  ...Object.fromEntries(Object.entries(CALL_PATHS).map(([path, route]) => [path, { post: describe(path, route) }])),
  '/sourceConfig': {
    get: {
      operationId: 'getSourceConfig',
      summary: 'The source that the browser client of RudderStack asks for',
      description: `The same for every key. ${KEY}`,
      tag: 'calls',
      scope: 'ingest',
      requestParams: KEY_PARAMETERS,
      responses: {
        200: {
          description: 'A source without destinations.',
          content: {
            'application/json': {
              schema: source,
              example: { source: { id: 'sluice', enabled: true }, updatedAt: '2026-01-01T00:00:00.000Z' },
            },
          },
        },
      },
      codes: ['event_log_unavailable', 'overloaded', 'clock_skewed'],
    },
  },
  ...Object.fromEntries(SETTINGS_PATHS.map((path) => [path.replace(':key', '{key}'), { get: settings(path) }])),
  ...Object.fromEntries(TELEMETRY_PATHS.map((path) => [path, { post: telemetry(path) }])),
};

function settings(path: string): OperationDescription {
  return {
    operationId: path.startsWith('/v1') ? 'getSettings' : 'getSettingsWithoutVersion',
    summary: 'The settings that the clients of Segment ask for',
    description: 'They send to the host that is named here: that of this request. Any key gets them.',
    tag: 'calls',
    requestParams: { path: z.object({ key: z.string().meta({ description: 'The API key.' }) }) },
    responses: {
      200: {
        description: 'Settings without other destinations.',
        content: {
          'application/json': {
            schema: z.looseObject({ integrations: z.looseObject({}) }),
            example: settingsFor('sk_…', 'events.acme.example'),
          },
        },
      },
    },
  };
}

function telemetry(path: string): OperationDescription {
  return {
    operationId: `ignore${path.replaceAll(/\W+(\w)/g, (_separator, first: string) => first.toUpperCase())}`,
    summary: 'What clients say of themselves: counted and ignored',
    tag: 'calls',
    responses: {
      200: {
        description: 'Nothing is kept.',
        content: { 'application/json': { schema: z.object({ success: z.literal(true) }), example: { success: true } } },
      },
    },
    codes: ['body_too_large', 'invalid_request'],
  };
}

function describe(path: string, route: CallRoute) {
  const isBatch = route === 'batch';
  return {
    operationId: `post${path.replaceAll(/\/(\w)/g, (_slash, first: string) => first.toUpperCase())}`,
    summary: isBatch ? 'Take a batch of calls' : `Take a ${route} call`,
    description: DESCRIPTION,
    tag: 'calls',
    scope: 'ingest',
    requestParams: KEY_PARAMETERS,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: isBatch ? batch : call,
          example: isBatch ? BATCH_EXAMPLE : CALL_EXAMPLES[route],
        },
      },
    },
    responses: {
      200: {
        description: 'The event log has everything, also the calls that were rejected.',
        content: { 'application/json': { schema: acceptedCalls, example: { success: true } } },
      },
    },
    codes: BODY_CODES,
  } as const;
}
