import type { OperationDescription, PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { BODY_CODES, object, rejectedMembers } from '../calls-openapi.ts';
import {
  CLIENT_CONFIG,
  CONFIG_PATH,
  CONFIG_SCRIPT_PATH,
  FLAG_PATHS,
  IGNORED_PATHS,
  NO_FLAGS,
  NOTHING,
  RECORDINGS_PATH,
  STATIC_PATHS,
} from './client-setup.ts';
import { BATCH_PATH, EVENT_PATHS } from './post-events.ts';

const event = z
  .looseObject({
    event: z.string().meta({
      description:
        'Its name. `$identify`, `$groupidentify` and `$create_alias` are stored as `identify`, `group` and `alias`.',
    }),
    distinct_id: z.unknown().meta({
      description:
        'The user, or the anonymous person where the properties say so. It may be in the properties, or named `$distinct_id`. What is no text becomes its JSON.',
    }),
    uuid: z.string().nullish().meta({ description: 'Tells a repeat from a new event. Default: made of the event.' }),
    timestamp: z.string().nullish().meta({
      description:
        'ISO 8601. Default, also for one that cannot be read: the time inside a UUIDv7, else the time of receipt.',
    }),
    properties: object('Stored as they come, without the API key.'),
    $set: object('Properties of the user to set; `null` removes one.'),
    $set_once: object('Properties of the user to set where nothing is set. `null` sets nothing.'),
    $unset: z.array(z.string()).nullish().meta({ description: 'Properties of the user to remove.' }),
  })
  .meta({ id: 'PosthogEvent', description: "An event of PostHog's clients. Other fields are ignored." });

const key = z.string().nullish().meta({ description: 'The API key; also as `token`.' });

const batch = z.looseObject({ api_key: key, batch: z.array(event) }).meta({ id: 'PosthogBatch' });

const acceptedEvents = z
  .object({
    status: z.literal(1),
    ...rejectedMembers('Events'),
  })
  .meta({ id: 'AcceptedPosthogEvents' });

const EVENT_EXAMPLE = {
  event: 'signed_up',
  distinct_id: 'jane',
  uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002',
  timestamp: '2026-03-01T12:00:00.000Z',
  properties: { plan: 'pro', $groups: { company: 'acme' }, $set: { name: 'Jane' } },
};

const KEY = `The API key is \`api_key\` or \`token\` in the body, in the properties of its first event or in the query, else the
token of \`Authorization: Bearer\` or the user name of \`Authorization: Basic\`.`;

const KEY_PARAMETERS = {
  query: z.object({
    api_key: z.string().optional().meta({ description: 'The API key.' }),
    token: z.string().optional().meta({ description: 'The same.' }),
  }),
};

const KEY_CODES = ['invalid_api_key', 'missing_scope', 'keys_unavailable'] as const;

function postEvents(path: string, schema: z.ZodType, example: object): OperationDescription {
  return {
    operationId: `posthog${path.replaceAll(/\/(\w)/g, (_slash, first: string) => first.toUpperCase())}`,
    summary: path === BATCH_PATH ? 'Take a batch of events' : 'Take one event, an array of events, or a batch',
    description: `For the clients of PostHog. ${KEY} The body is JSON, whatever its type, compressed with gzip or not, or the field
\`data\` of a form: JSON in base64. An event that cannot be taken does not keep the others from being taken.`,
    tag: 'posthog',
    requestParams: KEY_PARAMETERS,
    requestBody: { required: true, content: { 'application/json': { schema, example } } },
    responses: {
      200: {
        description: 'The event log has everything, also the events that were rejected.',
        content: { 'application/json': { schema: acceptedEvents, example: { status: 1 } } },
      },
    },
    codes: [...KEY_CODES, 'rate_limited', ...BODY_CODES],
  };
}

function askForFlags(path: string): OperationDescription {
  return {
    operationId: `posthog${path === '/flags' ? 'Flags' : 'Decide'}`,
    summary: 'Feature flags: there are none',
    description: KEY,
    tag: 'posthog',
    requestParams: KEY_PARAMETERS,
    requestBody: {
      required: true,
      content: { 'application/json': { schema: z.looseObject({ token: key }), example: { distinct_id: 'jane' } } },
    },
    responses: {
      200: {
        description: 'No flags.',
        content: {
          'application/json': {
            schema: z.looseObject({ flags: z.looseObject({}), errorsWhileComputingFlags: z.boolean() }),
            example: NO_FLAGS,
          },
        },
      },
    },
    codes: [...KEY_CODES, 'rate_limited', ...BODY_CODES],
  };
}

const KEY_IN_PATH = z.object({ key: z.string().meta({ description: 'The API key.' }) });

const SCRIPT_RESPONSE = {
  200: {
    description: 'JavaScript that does nothing.',
    content: { 'text/javascript': { schema: z.string(), example: '' } },
  },
};

function script(operationId: string, path: z.ZodObject, codes: OperationDescription['codes']): OperationDescription {
  return {
    operationId,
    summary: 'A script that posthog-js loads',
    tag: 'posthog',
    requestParams: { path },
    responses: SCRIPT_RESPONSE,
    codes: codes ?? [],
  };
}

const FILE = z.string().meta({ description: 'The name of a script: it ends with `.js`.' });

/** The paths of PostHog's clients, for the OpenAPI document. */
export const POSTHOG_PATH_DESCRIPTIONS: PathDescriptions = {
  ...Object.fromEntries(
    EVENT_PATHS.map((path) => [
      path,
      { post: postEvents(path, z.union([event, z.array(event), batch]), EVENT_EXAMPLE) },
    ]),
  ),
  [BATCH_PATH]: { post: postEvents(BATCH_PATH, batch, { batch: [EVENT_EXAMPLE] }) },
  ...Object.fromEntries(FLAG_PATHS.map((path) => [path, { post: askForFlags(path) }])),
  [documented(CONFIG_PATH)]: {
    get: {
      operationId: 'posthogConfig',
      summary: 'The configuration that posthog-js asks for',
      description: 'The same for every key: events are compressed, and everything else is off.',
      tag: 'posthog',
      requestParams: { path: KEY_IN_PATH },
      responses: {
        200: {
          description: 'The configuration.',
          content: { 'application/json': { schema: z.looseObject({}), example: CLIENT_CONFIG } },
        },
      },
      codes: KEY_CODES,
    },
  },
  [documented(CONFIG_SCRIPT_PATH)]: { get: script('posthogConfigScript', KEY_IN_PATH, KEY_CODES) },
  [documented(STATIC_PATHS[0])]: { get: script('posthogScript', z.object({ file: FILE }), ['not_found']) },
  [documented(STATIC_PATHS[1])]: {
    get: script('posthogVersionScript', z.object({ version: z.string(), file: FILE }), ['not_found']),
  },
  [RECORDINGS_PATH]: {
    post: {
      operationId: 'posthogRecordings',
      summary: 'Recordings of sessions: counted and ignored',
      tag: 'posthog',
      responses: {
        200: {
          description: 'Nothing is kept.',
          content: { 'application/json': { schema: z.object({ status: z.literal(1) }), example: { status: 1 } } },
        },
      },
      codes: ['body_too_large', 'invalid_request'],
    },
  },
  ...Object.fromEntries(
    IGNORED_PATHS.map((path) => [
      documented(path),
      { post: ignored('posthogIgnored', path), get: ignored('posthogAsk', path) },
    ]),
  ),
};

function ignored(name: string, path: string): OperationDescription {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, parameter = '']) => parameter);
  return {
    operationId: `${name}${path.replaceAll(/\W+(\w)/g, (_separator, first: string) => first.toUpperCase())}`,
    summary: 'What Sluice does not have: counted and ignored',
    description:
      "Logs, push tokens, surveys and so on, also what is new to PostHog's clients. Paths of events are not among them.",
    tag: 'posthog',
    requestParams: { path: z.object(Object.fromEntries(names.map((parameter) => [parameter, z.string()]))) },
    responses: {
      200: {
        description: 'There is nothing, and nothing is kept.',
        content: { 'application/json': { schema: z.looseObject({ status: z.literal(1) }), example: NOTHING } },
      },
    },
    codes: ['not_found', 'body_too_large', 'invalid_request'],
  };
}

/** Returns a path as OpenAPI writes it: `/array/{key}/config`. */
function documented(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}
