import type { OperationDescription } from '@sluice/shared/http/openapi';
import { onResponseEnd } from '@sluice/shared/http/response-end';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import {
  type CommonDescription,
  encodeCursor,
  jsonObjectSchema,
  limitSchema,
  nextCursorSchema,
  once,
  sendJson,
  timeSchema,
} from '../../http/http.ts';
import {
  type ReadDependencies,
  type RequestContext,
  RequestQueries,
  registerRead,
  TimeBudget,
} from '../../store/store.ts';
import { documentFilters, openParameters, querySchema } from '../filters/parameter-schemas.ts';
import { readPerson } from '../owners/persons.ts';
import { SEGMENT_OPERATORS } from '../owners/segment.ts';
import {
  type EntitiesRequest,
  entitiesParameters,
  entityParameters,
  identifierParameter,
  type ListRequest,
  membershipsParameters,
  parseEntitiesRequest,
  parseMembershipsRequest,
  parseRecordRequest,
} from './entities-parameters.ts';
import { entityExists, readEntity, readPage } from './entities-reader.ts';
import { ENTITY_KINDS, ENTITY_ROUTES, type EntityKind, noSuchEntity, OTHER_KIND } from './entity-kinds.ts';
import { type Entity, entityRecord, membershipRecord, type SeenEntity } from './entity-record.ts';
import { readMemberships } from './memberships-reader.ts';
import { readSeenPage } from './seen-reader.ts';

/** How much longer than its queries a client may read a response, in milliseconds. */
const GRACE_MS = 2_000;

/** Registers `GET /users`, `GET /users/{foreignId}`, its organizations, and the same for organizations. */
export function registerEntities(app: FastifyInstance, deps: ReadDependencies): void {
  for (const kind of ENTITY_KINDS) {
    const { path, idName } = ENTITY_ROUTES[kind];
    const other = ENTITY_ROUTES[OTHER_KIND[kind]];
    const schema = once(() => entitySchema(kind));

    registerRead(app, {
      path,
      describe: (common) => describeList(kind, schema(), common),
      parse: ({ query, workspace }) => parseEntitiesRequest(kind, query, workspace),
      async respond(request, context, reply) {
        const queries = await whenHeld(deps, context, reply);
        const entities = request.limit === 0 ? none() : readList(queries, kind, request);
        const recordOf = ({ entity }: Listed<Entity>) => entityRecord(idName, entity);
        return await sendJson(reply, pageJson(request, entities, recordOf));
      },
    });

    registerRead(app, {
      path: `${path}/:id`,
      describe: (common) => describeOne(kind, schema(), common),
      parse: parseRecordRequest,
      async respond({ id, propertyTimes }, context, reply) {
        const queries = await whenHeld(deps, context, reply);
        const [entity, mergedInto] = await Promise.all([
          readEntity(queries, kind, id),
          kind === 'user' ? readPerson(deps.queryRunner, id, context) : undefined,
        ]);
        if (!entity) throw noSuchEntity(kind);
        return await sendJson(reply, entityRecord(idName, entity, { hasTimes: propertyTimes, mergedInto }));
      },
    });

    registerRead(app, {
      path: `${path}/:id${other.path}`,
      describe: (common) => describeMemberships(kind, common),
      parse: ({ params: { id }, query, workspace }) => ({
        id,
        ...parseMembershipsRequest(kind, id, query, workspace),
      }),
      async respond({ id, ...request }, context, reply) {
        const { limit, after } = request;
        const queries = await whenHeld(deps, context, reply);
        if (!(await entityExists(queries, kind, id))) throw noSuchEntity(kind);
        const page = { kind, id, after: after?.id ?? '', rowsMax: limit + 1 };
        const memberships = limit === 0 ? none() : listedById(readMemberships(queries, page));
        const recordOf = ({ entity }: Listed<SeenEntity>) => [membershipRecord(other.idName, entity)];
        return await sendJson(reply, pageJson(request, memberships, recordOf));
      },
    });
  }
}

function entitySchema(kind: EntityKind) {
  const { idName, schema: name } = ENTITY_ROUTES[kind];
  return z
    .object({
      ...{ [idName]: z.string(), properties: jsonObjectSchema, firstSeenAt: timeSchema, lastSeenAt: timeSchema },
      propertiesSetAt: z.record(z.string(), timeSchema).optional().meta({
        description:
          'When each property was set last, also to the same value. Only of one record, with `propertyTimes=true`.',
      }),
      ...(kind === 'user' && {
        mergedInto: z.string().optional().meta({
          description:
            'Whom this user became, as `POST /identities/merge` said, where that counts: with `identity=linked`, what it did is what that one did. Only of one record.',
        }),
      }),
    })
    .meta({ id: name });
}

function entityExample(kind: EntityKind) {
  const { idName, exampleId } = ENTITY_ROUTES[kind];
  return { [idName]: exampleId, properties: { plan: 'pro' }, ...EXAMPLE_TIMES };
}

const EXAMPLE_TIMES = { firstSeenAt: '2026-03-01T12:00:00.000Z', lastSeenAt: '2026-03-02T08:30:00.000Z' };

/** Describes the list of users or organizations. */
function describeList(kind: EntityKind, entity: z.ZodType, common: CommonDescription): OperationDescription {
  const { schema: name, tag } = ENTITY_ROUTES[kind];
  const page = z
    .object({ limit: limitSchema, results: z.array(entity), nextCursor: nextCursorSchema })
    .meta({ id: `${name}Page` });
  const example = { limit: 100, results: [entityExample(kind)], nextCursor: null };
  return {
    ...common,
    operationId: `list${name}s`,
    summary: `All ${tag}, a page at a time`,
    tag,
    requestParams: {
      query: querySchema(entitiesParameters, {
        properties: documentFilters('properties'),
        segments: openParameters(
          `^segment\\[(${SEGMENT_OPERATORS.join('|')})\\]$`,
          '`segment[<operator>]=<name>`, as `segment`.',
          { 'segment[ne]': 'paying' },
        ),
      }),
    },
    responses: {
      200: { description: `A page of ${tag}.`, content: { 'application/json': { schema: page, example } } },
    },
  };
}

/** Describes a user or an organization. */
function describeOne(kind: EntityKind, entity: z.ZodType, common: CommonDescription): OperationDescription {
  const { idName, schema: name, tag, noun } = ENTITY_ROUTES[kind];
  return {
    ...common,
    codes: ['not_found', ...common.codes],
    operationId: `get${name}`,
    summary: `${noun[0]?.toUpperCase()}${noun.slice(1)} as it is now`,
    tag,
    requestParams: { path: z.object({ [idName]: identifierParameter }), query: querySchema(entityParameters, {}) },
    responses: {
      200: {
        description: 'As it is now.',
        content: { 'application/json': { schema: entity, example: entityExample(kind) } },
      },
    },
  };
}

/** Describes the memberships of a user or an organization. */
function describeMemberships(kind: EntityKind, common: CommonDescription): OperationDescription {
  const { idName, schema: name, tag, noun } = ENTITY_ROUTES[kind];
  const other = ENTITY_ROUTES[OTHER_KIND[kind]];
  const membership = z
    .object({ [other.idName]: z.string(), firstSeenAt: timeSchema, lastSeenAt: timeSchema })
    .meta({ id: `${name}${other.schema}` });
  const page = z
    .object({ limit: limitSchema, results: z.array(membership), nextCursor: nextCursorSchema })
    .meta({ id: `${name}${other.schema}Page` });
  const example = { limit: 100, results: [{ [other.idName]: other.exampleId, ...EXAMPLE_TIMES }], nextCursor: null };
  return {
    ...common,
    codes: ['not_found', ...common.codes],
    operationId: `list${name}${other.schema}s`,
    summary: `The ${other.tag} of ${noun}, ordered by identifier, a page at a time`,
    tag,
    requestParams: {
      path: z.object({ [idName]: identifierParameter }),
      query: querySchema(membershipsParameters, {}),
    },
    responses: {
      200: {
        description: `A page of ${other.tag}, with the times of the first and the last submission that names both: of its events, or else of its receipt.`,
        content: { 'application/json': { schema: page, example } },
      },
    },
  };
}

/** Waits until the response may be held in memory, and returns what runs its queries. */
async function whenHeld(
  { config, queryRunner }: ReadDependencies,
  context: RequestContext,
  reply: FastifyReply,
): Promise<RequestQueries> {
  const budget = new TimeBudget(config.QUERY_TIMEOUT_MS);
  const release = await queryRunner.holdEntities({ ...context, budget });
  // Its queries may run for one half, and wait for the other.
  onResponseEnd(reply, release, 2 * config.QUERY_TIMEOUT_MS + GRACE_MS);
  return new RequestQueries(queryRunner, context, budget);
}

async function* none(): AsyncGenerator<never, void, undefined> {}

/** What a page lists, and its place in the list as cursors have it. */
interface Listed<Entity> {
  readonly entity: Entity;
  readonly place: readonly (string | number)[];
}

/** Reads a page, and one more if there is a next page. */
async function* readList(
  queries: RequestQueries,
  kind: EntityKind,
  { limit, after, segments, properties, order }: EntitiesRequest,
): AsyncGenerator<Listed<Entity>, void, undefined> {
  const { field, direction } = order;
  const common = { kind, segments, properties, rowsMax: limit + 1 };
  if (field === 'id') {
    yield* listedById(readPage(queries, { ...common, direction, after: after?.id }));
    return;
  }
  const page = { ...common, order: { field, direction }, after };
  for await (const { entity, sortKey } of readSeenPage(queries, page)) {
    yield { entity, place: [sortKey.id, sortKey.seenMs] };
  }
}

async function* listedById<Item extends { readonly id: string }>(
  entities: AsyncGenerator<Item, void, undefined>,
): AsyncGenerator<Listed<Item>, void, undefined> {
  for await (const entity of entities) yield { entity, place: [entity.id] };
}

/** The JSON of a page, in chunks. */
async function* pageJson<Item extends Listed<unknown>>(
  { limit, list }: ListRequest,
  items: AsyncGenerator<Item, void, undefined>,
  recordOf: (item: Item) => Iterable<string> | AsyncIterable<string>,
): AsyncGenerator<string, void, undefined> {
  let count = 0;
  let last: Item | undefined;
  let nextCursor: string | null = null;
  yield `{"limit":${limit},"results":[`;
  for await (const item of items) {
    if (count === limit && last) {
      nextCursor = encodeCursor(list, last.place);
      break;
    }
    let separator = count > 0 ? ',' : '';
    for await (const chunk of recordOf(item)) {
      yield separator + chunk;
      separator = '';
    }
    last = item;
    count += 1;
  }
  yield `],"nextCursor":${JSON.stringify(nextCursor)}}`;
}
