import { createApiDocument, type OpenApiDocument, type PathDescriptions } from '@sluice/shared/http/openapi';
import { OPERATIONAL_PATHS, OPERATIONAL_TAG } from '@sluice/shared/http/operational-paths';
import { z } from 'zod';
import type { TrenchConfig } from './config.ts';
import { EVENT_TYPES } from './events/event-call.ts';
import { LIMIT_MAX } from './events/event-parameters.ts';
import { shownEvents } from './events/shown-event.ts';
import { BODY_CODES, json, WITH_KEY } from './http/openapi-parts.ts';
import { STATEMENTS_MAX } from './queries/post-queries.ts';
import { WEBHOOKS } from './webhooks/webhooks-openapi.ts';
import { changedWorkspace, createdWorkspace, newWorkspace, shownWorkspace } from './workspaces/workspace-body.ts';

const number = new Intl.NumberFormat('en');

/** Returns the OpenAPI document of trench-api: its routes, with the limits that are in force. */
export function trenchDocument(config: TrenchConfig): OpenApiDocument {
  return createApiDocument({
    title: 'Trench API of Sluice',
    description: `The HTTP interface of Trench, for clients that stay as they are. It calls ingest-api and query-api, and keeps nothing.

A public key is one with the scope \`ingest\`, a private key one with \`query\`, \`sql\` and
\`webhooks\`. A key of the other kind gets \`401\`.
Errors have \`statusCode\` and \`error\` as well, as in Trench.

## Limits

| what | limit |
| --- | --- |
| body | ${number.format(config.BODY_BYTES_MAX)} bytes |
| an event | ${number.format(config.EVENT_BYTES_MAX)} bytes |
| events of a page | ${number.format(LIMIT_MAX)} |
| statements of a request | ${STATEMENTS_MAX} |
| the result of a statement, or a page | ${number.format(config.RESPONSE_BYTES_MAX)} bytes |
| a request to ingest-api or query-api | ${number.format(config.SERVICE_TIMEOUT_MS)} ms |`,
    tags: [
      { name: 'events', description: 'Events' },
      { name: 'queries', description: 'SQL' },
      { name: 'webhooks', description: 'Webhooks' },
      { name: 'workspaces', description: 'Workspaces and their keys' },
      OPERATIONAL_TAG,
    ],
    paths: { ...OPERATIONAL_PATHS, '/': ROOT, ...EVENTS, ...QUERIES, ...WEBHOOKS, ...WORKSPACES },
  });
}

const ROOT: PathDescriptions[string] = {
  get: {
    operationId: 'describeService',
    summary: 'Says that the service runs',
    tag: 'operation',
    responses: {
      200: {
        description: 'It runs.',
        content: { 'text/plain': { schema: z.string(), example: 'Trench server is running' } },
      },
    },
  },
};

const identifier = (description: string) => z.union([z.string(), z.number()]).nullish().meta({ description });
const object = (description: string) => z.looseObject({}).nullish().meta({ description });

const event = z
  .looseObject({
    type: z.enum(EVENT_TYPES).nullish().meta({ description: 'Default: `track`.' }),
    event: z.string().nullish().meta({ description: 'Its name; `track` needs one. Others are called as their type.' }),
    userId: identifier('The user.'),
    groupId: identifier('The organization; `group` needs it.'),
    anonymousId: identifier('A person who is not known yet.'),
    instanceId: identifier('An identifier to filter by.'),
    timestamp: z.string().nullish().meta({ description: 'ISO 8601. Default: the time of receipt.' }),
    properties: object('Stored as they come.'),
    traits: object('`identify`: properties of the user. `group`: of the organization.'),
    context: object('Stored as it comes.'),
    messageId: identifier('A text that is the same when the event is sent again: then it is stored once.'),
  })
  .meta({ id: 'SentEvent', description: 'Other members are ignored, also `uuid`: each event gets one.' });

const EVENT_EXAMPLE = {
  uuid: '0199c1a2-7b1a-7cc0-9d5e-0242ac120002',
  type: 'track',
  event: 'ConnectedAccount',
  userId: 'ada',
  properties: { totalAccounts: 5 },
  timestamp: '2026-03-01T12:00:00.000Z',
  parsedAt: '2026-03-01T12:00:00.250Z',
};

const PAGE_EXAMPLE = { results: [EVENT_EXAMPLE], limit: 1, offset: 0, total: 1 };

const text = (description: string) => z.string().optional().meta({ description });

const QUERY_CODES = ['query_too_expensive', 'store_unavailable', 'overloaded'] as const;

const EVENTS: PathDescriptions = {
  '/events': {
    post: {
      ...WITH_KEY,
      operationId: 'createEvents',
      summary: 'Add events',
      description: 'If one event is wrong, none is stored. The key is a public one.',
      tag: 'events',
      scope: 'ingest',
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: z.looseObject({ events: z.array(event) }),
            example: {
              events: [{ type: 'track', userId: 'ada', event: 'ConnectedAccount', properties: { totalAccounts: 5 } }],
            },
          },
        },
      },
      responses: {
        201: {
          description: 'Kafka has the events.',
          content: { 'application/json': { schema: shownEvents, example: PAGE_EXAMPLE } },
        },
      },
      codes: [...BODY_CODES, 'event_log_unavailable', 'overloaded', 'clock_skewed', 'body_too_slow'],
    },
    get: {
      ...WITH_KEY,
      operationId: 'getEvents',
      summary: 'Read events',
      description:
        'Parameters that are empty or not known do nothing. Beside these, filters of query-api by properties (`properties.plan[ne]=pro`), by users and organizations (`organization.properties.plan=pro`, `user.firstSeenAt[gte]=2026-03-01`) and by segments (`segment=paying`) are taken. The key is a private one.',
      tag: 'events',
      scope: 'query',
      requestParams: {
        query: z.object({
          uuid: text('Equality, as the next five.'),
          event: text('Its name.'),
          userId: text('The user.'),
          groupId: text('The organization.'),
          anonymousId: text('A person who is not known yet.'),
          instanceId: text('The instance.'),
          properties: text('A JSON object: each member must be equal, also inside of an array.'),
          traits: text('The same for traits.'),
          context: text('The same for the context.'),
          startDate: text('ISO 8601, inclusive.'),
          endDate: text('ISO 8601, inclusive. A date alone is its beginning.'),
          limit: text(`Default and at most: ${LIMIT_MAX}.`),
          offset: text('Default: 0.'),
          orderByField: text(
            'Default: `timestamp`. Others: `event`, `type`, `uuid`, `user_id`, `parsed_at` and so on.',
          ),
          orderByDirection: text('`DESC` (default) or `ASC`.'),
        }),
      },
      responses: {
        200: {
          description: 'A page of events.',
          content: { 'application/json': { schema: shownEvents, example: { ...PAGE_EXAMPLE, limit: LIMIT_MAX } } },
        },
      },
      codes: QUERY_CODES,
    },
  },
};

const QUERIES: PathDescriptions = {
  '/queries': {
    post: {
      ...WITH_KEY,
      operationId: 'executeQueries',
      summary: 'Run SQL',
      description:
        "One `SELECT` of ClickHouse each, over the views `events`, `users` and `organizations`. Trench's names of columns are known: `userId`, `groupId`, `group_id`, `instanceId`, `anonymousId`, `parsed_at`. The key is a private one.",
      tag: 'queries',
      scope: 'sql',
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: z.looseObject({ queries: z.array(z.string()).min(1).max(STATEMENTS_MAX) }),
            example: { queries: ['SELECT event, userId FROM events LIMIT 1'] },
          },
        },
      },
      responses: {
        201: {
          description: 'The rows of each statement.',
          content: {
            'application/json': {
              schema: z.object({
                results: z.array(z.array(z.record(z.string(), z.unknown()))),
                limit: z.literal(0),
                offset: z.literal(0),
                total: z.int().meta({ description: 'The number of statements.' }),
              }),
              example: { results: [[{ event: 'ConnectedAccount', userId: 'ada' }]], limit: 0, offset: 0, total: 1 },
            },
          },
        },
      },
      codes: [...BODY_CODES, ...QUERY_CODES, 'invalid_sql', 'sql_not_available'],
    },
  },
};

const WORKSPACE_EXAMPLE = {
  workspaceId: '7f6f1f1e-3a0e-4a55-8a5f-6a3bb0a4c3b1',
  name: 'Acme',
  databaseName: '7f6f1f1e-3a0e-4a55-8a5f-6a3bb0a4c3b1',
  isDefault: false,
  createdAt: '2026-03-01T12:00:00.000Z',
};

/** The key is that of the admin, which ingest-api and query-api do not know. */
const WITH_ADMIN_KEY = { tag: 'workspaces', scope: 'admin', withoutCodes: ['missing_scope', 'rate_limited'] } as const;

const WORKSPACE = {
  200: { description: 'The workspace.', content: json(shownWorkspace, WORKSPACE_EXAMPLE) },
};

const OF_WORKSPACE = {
  ...WITH_ADMIN_KEY,
  requestParams: { path: z.object({ workspaceId: z.string() }) },
};

const WORKSPACES: PathDescriptions = {
  '/workspaces': {
    post: {
      ...WITH_ADMIN_KEY,
      operationId: 'createWorkspace',
      summary: 'Create a workspace with two keys',
      requestBody: { required: true, content: json(newWorkspace, { name: 'Acme' }) },
      responses: {
        201: {
          description: 'The workspace, and its keys this only time.',
          content: json(createdWorkspace, {
            ...WORKSPACE_EXAMPLE,
            privateApiKey: 'sk_5wJ4TtR2ZrP0c2Vv0m3nJY3Qe1uCk0bZ8oXh7gLr9aE',
            publicApiKey: 'sk_Zk0pN8sXo2yQb7Vt5cLw1RmJ4uHf6eGa3dTiYqPnBzU',
          }),
        },
      },
      codes: BODY_CODES,
    },
  },
  '/workspaces/{workspaceId}': {
    get: {
      ...OF_WORKSPACE,
      operationId: 'getWorkspace',
      summary: 'Read a workspace',
      responses: WORKSPACE,
      codes: ['not_found'],
    },
    put: {
      ...OF_WORKSPACE,
      operationId: 'updateWorkspace',
      summary: 'Change the name and the properties of a workspace',
      requestBody: { required: true, content: json(changedWorkspace, { name: 'Acme', properties: { plan: 'pro' } }) },
      responses: WORKSPACE,
      codes: ['not_found', ...BODY_CODES],
    },
    delete: {
      ...OF_WORKSPACE,
      operationId: 'deleteWorkspace',
      summary: 'Remove a workspace and its keys',
      description: 'Services refuse the keys within a second. The events stay.',
      responses: { 200: { description: 'It is removed.' } },
      codes: ['not_found'],
    },
  },
};
