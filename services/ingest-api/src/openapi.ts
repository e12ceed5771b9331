import { createApiDocument, type OpenApiDocument, type PathDescriptions } from '@sluice/shared/http/openapi';
import { OPERATIONAL_PATHS, OPERATIONAL_TAG } from '@sluice/shared/http/operational-paths';
import { type Nobody, nobodyOf } from '@sluice/submissions/reading/nobody';
import {
  deletionParameters,
  idempotencyKey,
  identityFields,
  mergeFields,
  type SubmissionSchemas,
} from '@sluice/submissions/reading/submission';
import { JSON_VALUES_MAX } from '@sluice/submissions/reading/submission-limits';
import { z } from 'zod';
import { type IngestConfig, rowBytesMax } from './config.ts';
import { CONTENT_ENCODINGS } from './http/body-reader.ts';
import { CALL_PATH_DESCRIPTIONS } from './routes/calls-openapi.ts';
import { identityBodies } from './routes/identities.ts';
import { POSTHOG_PATH_DESCRIPTIONS } from './routes/posthog/posthog-openapi.ts';

/** Creates the OpenAPI document of ingest-api: its routes, with the limits that are in force. */
export function ingestDocument(config: IngestConfig, schemas: SubmissionSchemas): OpenApiDocument {
  return createApiDocument({
    title: 'Sluice ingest API',
    description: `Accepts events, and properties of users and organizations, and responds once the event log has them.\n\n${limits(config)}`,
    tags: [
      { name: 'submissions', description: 'Events and properties' },
      { name: 'calls', description: 'For the clients of Segment and of RudderStack' },
      { name: 'posthog', description: 'For the clients of PostHog' },
      { name: 'users', description: 'Deleting users, and whose anonymous visitors are' },
      OPERATIONAL_TAG,
    ],
    paths: {
      ...paths(schemas, nobodyOf(config)),
      ...CALL_PATH_DESCRIPTIONS,
      ...POSTHOG_PATH_DESCRIPTIONS,
      ...OPERATIONAL_PATHS,
    },
  });
}

function limits(config: IngestConfig): string {
  const number = new Intl.NumberFormat('en');
  const rate = config.RATE_LIMIT_DEFAULT;
  return `## Limits

| what | limit |
| --- | --- |
| a body, after decompression | ${number.format(config.BODY_BYTES_MAX)} bytes |
| an event or a property, as JSON | ${number.format(config.EVENT_BYTES_MAX)} bytes without white space between tokens |
| values in an event or a property | ${number.format(JSON_VALUES_MAX)} |
| events of a submission | ${number.format(config.EVENTS_PER_SUBMISSION_MAX)} |
| properties of a submission | ${number.format(config.PROPERTIES_PER_SUBMISSION_MAX)} |
| the rows of a submission: each event and property with the identifiers | ${number.format(rowBytesMax(config))} bytes |
| a key without a rate limit of its own | ${rate === undefined ? 'none' : `${number.format(rate)} events a second`} |

${
  config.CORS_ORIGINS.length === 0
    ? 'Browsers on other origins may not submit.'
    : `Browsers may submit from: ${config.CORS_ORIGINS.join(', ')}.`
}`;
}

const acceptedSubmission = z
  .object({
    status: z.literal('accepted'),
    events: z.array(z.object({ uuid: z.guid() })).meta({ description: 'One for each event, in order.' }),
  })
  .meta({ id: 'AcceptedSubmission' });

const acceptedDeletion = z
  .object({ status: z.literal('accepted'), foreignId: z.string().optional(), anonymousId: z.string().optional() })
  .meta({ id: 'AcceptedDeletion', description: 'With the identifier that the request has.' });

const acceptedIdentity = z
  .object({ status: z.literal('accepted'), anonymousId: z.string(), userId: z.string().optional() })
  .meta({ id: 'AcceptedIdentity', description: 'With the identifiers that the request has.' });

const acceptedMerge = z
  .object({ status: z.literal('accepted'), userId: z.string(), into: z.string().optional() })
  .meta({ id: 'AcceptedMerge', description: 'With the identifiers that the request has.' });

const events = [
  {
    event: 'signed_up',
    uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002',
    timestamp: '2026-03-01T12:00:00.000Z',
    properties: { plan: 'pro' },
  },
];

const BODY_CODES = ['body_too_slow', 'body_too_large', 'unsupported_media_type'] as const;
const LOG_CODES = ['event_log_unavailable', 'overloaded', 'clock_skewed'] as const;

const submissionResponse = {
  description: 'The event log has everything.',
  content: {
    'application/json': {
      schema: acceptedSubmission,
      example: { status: 'accepted', events: [{ uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002' }] },
    },
  },
};

const submissionHeaders = z.object({
  'Idempotency-Key': idempotencyKey,
  'Content-Encoding': z
    .enum(['identity', ...CONTENT_ENCODINGS])
    .optional()
    .meta({ description: 'How the body is compressed.' }),
});

const repeats = `Everything is accepted, or nothing. An event with the \`uuid\` and \`timestamp\` of an earlier one is a repeat, and changes
nothing. An event without \`timestamp\` (and whose \`uuid\` is no UUIDv7) is recognised by its \`uuid\` alone, for at least
five minutes. \`null\` for an optional field counts as absent; an unknown field is an error.`;

/** What the two operations that submit have in common. */
const SUBMISSION = {
  tag: 'submissions',
  scope: 'ingest',
  description: repeats,
  requestParams: { header: submissionHeaders },
  responses: { 202: submissionResponse },
  codes: ['malformed_json', ...BODY_CODES, ...LOG_CODES],
} as const;

function paths({ userGroup, user }: SubmissionSchemas, nobody: Nobody): PathDescriptions {
  return {
    '/v1/public/userGroups': {
      post: {
        ...SUBMISSION,
        operationId: 'submitUserGroup',
        summary: 'Add events to an organization, set its properties, or both',
        requestBody: { required: true, content: { 'application/json': { schema: userGroup, examples: USER_GROUPS } } },
      },
    },
    '/v1/public/users': {
      post: {
        ...SUBMISSION,
        operationId: 'submitUser',
        summary: 'Add events to a user, set its properties, or both',
        requestBody: { required: true, content: { 'application/json': { schema: user, examples: USERS } } },
      },
    },
    '/v1/users': { delete: DELETE_USER },
    '/v1/identities': { post: sayIdentity(nobody), delete: TAKE_IDENTITY_BACK },
    '/v1/identities/merge': { post: sayMerge(nobody), delete: TAKE_MERGE_BACK },
  };
}

const USER_GROUPS = {
  events: {
    summary: 'An event and properties',
    value: {
      foreignUserGroupId: 'acme',
      foreignUserId: 'jane',
      events,
      properties: { name: 'Acme', trial: true },
    },
  },
  properties: {
    summary: 'Properties alone; one is removed',
    value: { foreignUserGroupId: 'acme', properties: { plan: { name: 'pro', seats: 5 }, trial: null } },
  },
};

const USERS = {
  events: { summary: 'An event', value: { foreignId: 'jane', events } },
  properties: { summary: 'Properties', value: { foreignId: 'jane', properties: { name: 'Jane' } } },
};

const DELETE_USER = {
  operationId: 'deleteUser',
  summary: 'Delete a user, its properties and its events, or an anonymous visitor and its events',
  description:
    'One of `foreignId` and `anonymousId` is required. The response is the same when there is no such user or visitor. A later submission creates the user again. An organization with the same name stays. A visitor has the events with its `anonymousId` that have no user; those of a user are deleted with the user.',
  tag: 'users',
  scope: 'delete',
  requestParams: { query: z.object(deletionParameters) },
  responses: {
    202: {
      description:
        'The event log has the deletion. Within a second no query returns data of the user or visitor any more.',
      content: {
        'application/json': { schema: acceptedDeletion, example: { status: 'accepted', foreignId: 'jane' } },
      },
    },
  },
  codes: [...BODY_CODES, ...LOG_CODES],
} as const;

/** Describes the response to what the event log has. */
const inLog = (schema: z.ZodType, example: object) => ({
  202: { description: 'The event log has it.', content: { 'application/json': { schema, example } } },
});

/** @param nobody whom it refuses */
const sayIdentity = (nobody: Nobody) =>
  ({
    operationId: 'linkVisitor',
    summary: 'Say whose an anonymous visitor is',
    description:
      'The events of the visitor that have no user are those of the user from now on, where reports link them. It outranks what events say, and the last that is said counts. Nothing that is stored changes.',
    tag: 'users',
    scope: 'delete',
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: identityBodies(nobody).visitor,
          examples: { visitor: { summary: 'A visitor', value: { anonymousId: 'a7f3', userId: 'jane' } } },
        },
      },
    },
    responses: inLog(acceptedIdentity, { status: 'accepted', anonymousId: 'a7f3', userId: 'jane' }),
    codes: ['malformed_json', ...BODY_CODES, ...LOG_CODES],
  }) as const;

const TAKE_IDENTITY_BACK = {
  operationId: 'unlinkVisitor',
  summary: 'Say that an anonymous visitor is nobody',
  description:
    'Whatever linked it counts no more, and no later event links it again. Reports are as they were before it was linked.',
  tag: 'users',
  scope: 'delete',
  requestParams: { query: z.object({ anonymousId: identityFields.anonymousId }) },
  responses: inLog(acceptedIdentity, { status: 'accepted', anonymousId: 'a7f3' }),
  codes: [...BODY_CODES, ...LOG_CODES],
} as const;

/** @param nobody whom it refuses */
const sayMerge = (nobody: Nobody) =>
  ({
    operationId: 'mergeUser',
    summary: 'Say that a user became another one',
    description:
      'What the first one did is what the second one did from now on, where reports link them. Nothing that is stored changes. While `into` became somebody else itself, it does not count: `POST /identities/merge` of query-api looks, and refuses that. Deleting `into` deletes who became it.',
    tag: 'users',
    scope: 'admin',
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: identityBodies(nobody).merge,
          examples: { users: { summary: 'Two users', value: { userId: 'jane@old.example', into: 'jane' } } },
        },
      },
    },
    responses: inLog(acceptedMerge, { status: 'accepted', userId: 'jane@old.example', into: 'jane' }),
    codes: ['malformed_json', ...BODY_CODES, ...LOG_CODES],
  }) as const;

const TAKE_MERGE_BACK = {
  operationId: 'unmergeUser',
  summary: 'Say that a user did not become another one',
  description: 'Reports are as they were before the merge.',
  tag: 'users',
  scope: 'admin',
  requestParams: { query: z.object({ userId: mergeFields.userId }) },
  responses: inLog(acceptedMerge, { status: 'accepted', userId: 'jane@old.example' }),
  codes: [...BODY_CODES, ...LOG_CODES],
} as const;
