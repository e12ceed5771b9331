import { createApiDocument, type OpenApiDocument, type PathDescriptions } from '@sluice/shared/http/openapi';
import { OPERATIONAL_PATHS, OPERATIONAL_TAG } from '@sluice/shared/http/operational-paths';
import { z } from 'zod';
import type { QueryConfig } from './config.ts';
import { entitiesParameters } from './entities/entities-parameters.ts';
import { ENTITY_ROUTES } from './entities/entities-route.ts';
import { eventFilterable, eventParameters } from './events/events-parameters.ts';
import { ITEMS_MAX, type OperandKind } from './filters/operators.ts';
import { LIMIT_MAX, type ParameterShape } from './filters/parameters.ts';
import { DOCUMENTS, type DocumentName, NAME_DOTS_MAX, PROPERTY_FILTERS_MAX } from './filters/property-filter.ts';

/** What query-api says of itself: its routes, with the limits that are in force. */
export function queryDocument(config: QueryConfig): OpenApiDocument {
  return createApiDocument({
    title: 'Sluice query API',
    description: `Serves stored events, users and organizations of one workspace.\n\n${limits(config)}`,
    tags: [
      { name: 'events', description: 'Events, with filters, order and pages' },
      { name: 'users', description: 'Users as they are now' },
      { name: 'organizations', description: 'Organizations as they are now' },
      OPERATIONAL_TAG,
    ],
    paths: { ...paths(config.QUERY_ANONYMOUS_WORKSPACE !== undefined), ...OPERATIONAL_PATHS },
  });
}

function limits(config: QueryConfig): string {
  const number = new Intl.NumberFormat('en');
  const rate = config.RATE_LIMIT_DEFAULT;
  const rows = config.QUERY_ROWS_READ_MAX;
  return `Parameters that are not known, that are repeated or that are malformed are refused.

## Limits

| what | limit |
| --- | --- |
| records of a page | ${number.format(LIMIT_MAX)} |
| a query | ${number.format(config.QUERY_TIMEOUT_MS)} ms, ${number.format(config.QUERY_MEMORY_BYTES_MAX)} bytes of memory, ${number.format(config.QUERY_BYTES_READ_MAX)} bytes read${rows === undefined ? '' : `, ${number.format(rows)} rows that its filters leave to be read`} |
| queries of a workspace at once | ${number.format(config.QUERY_CONCURRENCY_PER_WORKSPACE)}; others wait for their turn |
| counting the total | ${number.format(config.COUNT_TIMEOUT_MS)} ms, then \`total\` is \`null\` |
| properties to filter by | ${PROPERTY_FILTERS_MAX}, of at most ${NAME_DOTS_MAX} dots each |
| a key without a rate limit of its own | ${rate === undefined ? 'none' : `${number.format(rate)} requests a second`} |

Reading without a key is ${config.QUERY_ANONYMOUS_WORKSPACE === undefined ? 'not allowed' : 'allowed, of one workspace'}.`;
}

const time = z.string().meta({ format: 'date-time', description: 'In UTC, with milliseconds.' });
const jsonObject = z.record(z.string(), z.unknown());
const nextCursor = z.string().nullable().meta({ description: 'Where the next page begins; `null` at the end.' });
const limit = z.int().min(0).max(LIMIT_MAX).meta({ description: 'The limit that was applied.' });

const event = z
  .object({
    uuid: z.guid(),
    type: z.string(),
    event: z.string(),
    userId: z.string().nullable(),
    groupId: z.string().nullable(),
    anonymousId: z.string().nullable(),
    instanceId: z.string().nullable(),
    properties: jsonObject.meta({ description: 'Equal, as JSON, to what was submitted.' }),
    context: jsonObject,
    traits: jsonObject,
    timestamp: time,
    receivedAt: time,
  })
  .meta({ id: 'Event' });

const eventPage = z
  .object({
    limit,
    offset: z.int().min(0),
    total: z
      .int()
      .min(0)
      .nullable()
      .meta({ description: 'Exact; `null` when it was not asked for, or counting would take more than it may.' }),
    results: z.array(event),
    nextCursor,
  })
  .meta({ id: 'EventPage' });

const eventExample = {
  uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002',
  type: 'track',
  event: 'signed_up',
  userId: 'jane',
  groupId: 'acme',
  anonymousId: null,
  instanceId: null,
  properties: { plan: 'pro' },
  context: {},
  traits: {},
  timestamp: '2026-03-01T12:00:00.000Z',
  receivedAt: '2026-03-01T12:00:01.250Z',
};

/** Parameters whose names are not known before: each property of the object is one. */
function freeParameters(
  names: string,
  description: string,
  example: Readonly<Record<string, string>>,
  maxProperties?: number,
) {
  return z
    .record(z.string(), z.string())
    .optional()
    .meta({
      maxProperties,
      propertyNames: { pattern: names },
      description,
      param: {
        style: 'form',
        explode: true,
        examples: {
          all: { summary: 'No filter', value: {} },
          some: { summary: 'Filters that must all hold', value: example },
        },
      },
    });
}

const OPERATOR_TABLE = `| operator | holds when |
| --- | --- |
| \`eq\` | it equals the value; the default |
| \`ne\` | it does not, or is not there |
| \`in\` | it equals an item of a list: up to ${ITEMS_MAX}, separated by commas; \`\\,\` is a comma inside an item, \`\\\\\` a backslash |
| \`exists\` | \`true\`: it is there; \`false\`: it is not |
| \`lt\`, \`lte\`, \`gt\`, \`gte\` | it is less than the value, at most, greater, at least |
| \`prefix\`, \`contains\` | it is text that begins with the value, or has it anywhere |`;

/** The filters on the members of a JSON object. */
function documentFilters(document: DocumentName) {
  return freeParameters(
    `^${document}\\.`,
    `\`${document}.<name>=<value>\`, or with an operator in brackets behind the name: \`${document}.<name>[<operator>]=<value>\`. Equality is with the property written as text, a string as it is, anything else as JSON (\`true\`, \`12\`, \`null\`). A value that is a JSON number is compared with numbers, any other with strings by their bytes; one in double quotes is text. A dot in the name reaches into nested objects, and also matches a name with a dot. At most ${PROPERTY_FILTERS_MAX} such filters, all objects taken together.\n\n${OPERATOR_TABLE}`,
    { [`${document}.plan`]: 'pro', [`${document}.amount[gte]`]: '10' },
    PROPERTY_FILTERS_MAX,
  );
}

const FIELDS: Readonly<Record<string, OperandKind>> = eventFilterable.fields;

/** The operators on fields; equality without one is a parameter of its own. */
const fieldFilters = freeParameters(
  `^(${Object.entries(FIELDS)
    .map(([field, { operators }]) => `${field}\\[(${operators.join('|')})\\]`)
    .join('|')})$`,
  `\`<field>[<operator>]=<value>\`, for ${quotedList(Object.keys(FIELDS))}. \`uuid\` has \`eq\`, \`ne\` and \`in\` alone; \`event\` and \`type\` are always there and have no \`exists\`. A missing identifier equals the empty string. Text is compared by its UTF-8 bytes.\n\n${OPERATOR_TABLE}`,
  { 'userId[in]': 'jane,joe', 'event[prefix]': 'invoice_' },
);

function quotedList(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

const eventFilters = {
  ...Object.fromEntries(DOCUMENTS.map((document) => [document, documentFilters(document)])),
  operators: fieldFilters,
};

const entityFilters = { properties: documentFilters('properties') };

function queryOf(shape: ParameterShape, filters: z.ZodRawShape) {
  // A parameter is told of by its own metadata, which has to be on the outside.
  const optional = Object.entries(shape).map(
    ([name, schema]) => [name, schema.optional().meta({ description: schema.meta()?.description })] as const,
  );
  return z.object({ ...Object.fromEntries(optional), ...filters });
}

const STORE_CODES = ['query_too_expensive', 'store_unavailable', 'overloaded'] as const;

function paths(keyOptional: boolean): PathDescriptions {
  const reading = { scope: 'query', keyOptional, codes: STORE_CODES } as const;
  return {
    '/events': {
      get: {
        ...reading,
        operationId: 'listEvents',
        summary: 'Events, a page at a time',
        description:
          'All parameters are optional, and all filters have to match. `nextCursor` goes on at no greater cost, however deep, and neither skips nor repeats while events arrive.',
        tag: 'events',
        requestParams: { query: queryOf(eventParameters, eventFilters) },
        answers: {
          200: {
            description: 'A page of events.',
            content: {
              'application/json': {
                schema: eventPage,
                example: { limit: 100, offset: 0, total: 1, results: [eventExample], nextCursor: null },
              },
            },
          },
        },
      },
    },
    ...entityPaths(ENTITY_ROUTES.user, { name: 'User', tag: 'users', one: 'a user' }, reading),
    ...entityPaths(
      ENTITY_ROUTES.organization,
      { name: 'Organization', tag: 'organizations', one: 'an organization' },
      reading,
    ),
  };
}

type EntityRoute = (typeof ENTITY_ROUTES)[keyof typeof ENTITY_ROUTES];

/** The list of users or organizations, and one of them. */
function entityPaths(
  { path, idName }: EntityRoute,
  { name, tag, one }: { readonly name: string; readonly tag: string; readonly one: string },
  reading: { readonly scope: 'query'; readonly keyOptional: boolean; readonly codes: typeof STORE_CODES },
): PathDescriptions {
  const entity = z
    .object({ [idName]: z.string(), properties: jsonObject, firstSeenAt: time, lastSeenAt: time })
    .meta({ id: name });
  const example = {
    [idName]: tag === 'users' ? 'jane' : 'acme',
    properties: { plan: 'pro' },
    firstSeenAt: '2026-03-01T12:00:00.000Z',
    lastSeenAt: '2026-03-02T08:30:00.000Z',
  };
  return {
    [path]: {
      get: {
        ...reading,
        operationId: `list${name}s`,
        summary: `All ${tag}, ordered by identifier, a page at a time`,
        tag,
        requestParams: { query: queryOf(entitiesParameters, entityFilters) },
        answers: {
          200: {
            description: `A page of ${tag}.`,
            content: {
              'application/json': {
                schema: z.object({ limit, results: z.array(entity), nextCursor }).meta({ id: `${name}Page` }),
                example: { limit: 100, results: [example], nextCursor: null },
              },
            },
          },
        },
      },
    },
    [`${path}/{${idName}}`]: {
      get: {
        ...reading,
        codes: ['not_found', ...reading.codes],
        operationId: `get${name}`,
        summary: `${one[0]?.toUpperCase()}${one.slice(1)} as it is now`,
        tag,
        requestParams: {
          path: z.object({ [idName]: z.string().meta({ description: 'The identifier, percent-encoded.' }) }),
        },
        answers: {
          200: { description: 'As it is now.', content: { 'application/json': { schema: entity, example } } },
        },
      },
    },
  };
}
