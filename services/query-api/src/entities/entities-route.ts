import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { contextOf } from '../clickhouse/query.ts';
import { TimeBudget } from '../clickhouse/time-budget.ts';
import { encodeCursor } from '../cursor.ts';
import { whenSent, whileConnected } from '../disconnection.ts';
import { refuseParameters } from '../filters/parameters.ts';
import { sendJson } from '../json-response.ts';
import type { ReadDependencies } from '../read-dependencies.ts';
import {
  type EntitiesRequest,
  type ListRequest,
  parseEntitiesRequest,
  parseMembershipsRequest,
} from './entities-parameters.ts';
import { entityExists, type RunQuery, readEntity, readPage, withinTime } from './entities-reader.ts';
import { ENTITY_KINDS, ENTITY_ROUTES, type EntityKind, noSuchEntity, OTHER_KIND } from './entity-kinds.ts';
import { type Entity, entityRecord, membershipRecord } from './entity-record.ts';
import { readMemberships } from './memberships-reader.ts';
import { readSeenPage } from './seen-reader.ts';

/** How much longer than its queries a client may read a response, in milliseconds. */
const GRACE_MS = 2_000;

/** Registers `GET /users`, `GET /users/{foreignId}`, its organizations, and the same for organizations. */
export function registerEntities(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  for (const kind of ENTITY_KINDS) {
    const { path, idName } = ENTITY_ROUTES[kind];
    const other = ENTITY_ROUTES[OTHER_KIND[kind]];

    async function handle(
      request: FastifyRequest,
      reply: FastifyReply,
      respond: (run: RunQuery) => Promise<FastifyReply>,
    ): Promise<FastifyReply> {
      return await whileConnected(reply, async (signal) => {
        const budget = new TimeBudget(config.QUERY_TIMEOUT_MS);
        const context = contextOf(request, signal);
        const release = await queryRunner.holdEntities({ ...context, budget });
        // Its queries may run for one half, and wait for the other.
        whenSent(reply, release, 2 * config.QUERY_TIMEOUT_MS + GRACE_MS);
        return respond(withinTime(queryRunner, context, budget));
      });
    }

    app.get(path, async (request, reply) => {
      const parsed = parseEntitiesRequest(kind, request.query as QueryParameters, request.workspace);
      return await handle(request, reply, async (run) => {
        const entities = parsed.limit === 0 ? none() : readList(run, kind, parsed);
        return await sendJson(
          reply,
          pageJson(parsed, entities, ({ entity }) => entityRecord(idName, entity)),
        );
      });
    });

    app.get(`${path}/:id`, async (request, reply) => {
      refuseParameters(request.query as QueryParameters);
      const { id } = request.params as { id: string };
      return await handle(request, reply, async (run) => {
        const entity = await readEntity(run, kind, id);
        if (!entity) throw noSuchEntity(kind);
        return await sendJson(reply, entityRecord(idName, entity));
      });
    });

    app.get(`${path}/:id${other.path}`, async (request, reply) => {
      const { id } = request.params as { id: string };
      const parsed = parseMembershipsRequest(kind, id, request.query as QueryParameters, request.workspace);
      const { limit, after } = parsed;
      return await handle(request, reply, async (run) => {
        if (!(await entityExists(run, kind, id))) throw noSuchEntity(kind);
        const page = { kind, id, after: after?.id ?? '', rowsMax: limit + 1 };
        const memberships = limit === 0 ? none() : listedById(readMemberships(run, page));
        return await sendJson(
          reply,
          pageJson(parsed, memberships, ({ entity }) => [membershipRecord(other.idName, entity)]),
        );
      });
    });
  }
}

async function* none(): AsyncGenerator<never, void, undefined> {}

/** What a page lists, and its place in the list as cursors have it. */
interface Listed<Entity> {
  readonly entity: Entity;
  readonly place: readonly (string | number)[];
}

/** Reads a page, and one more if there is a next page. */
async function* readList(
  run: RunQuery,
  kind: EntityKind,
  { limit, after, properties, order }: EntitiesRequest,
): AsyncGenerator<Listed<Entity>, void, undefined> {
  const { field, direction } = order;
  const common = { kind, properties, rowsMax: limit + 1 };
  if (field === 'id') {
    yield* listedById(readPage(run, { ...common, direction, after: after?.id }));
    return;
  }
  const page = { ...common, order: { field, direction }, after };
  for await (const { entity, position } of readSeenPage(run, page)) {
    yield { entity, place: [position.id, position.seenMs] };
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
