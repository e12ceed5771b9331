import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import type { Store } from '../clickhouse/query-runner.ts';
import { encodeCursor } from '../cursor.ts';
import { whileConnected } from '../disconnection.ts';
import { sendJson } from '../json-response.ts';
import { type EntitiesRequest, parseEntitiesRequest, refuseParameters } from './entities-parameters.ts';
import type { EntityKind } from './entities-query.ts';
import { readEntities } from './entities-reader.ts';
import { type Entity, entityRecord } from './entity-record.ts';

/** Where users and organizations are served, and what their identifiers are called there. */
export const ENTITY_ROUTES = {
  user: { path: '/users', idName: 'foreignId' },
  organization: { path: '/organizations', idName: 'foreignUserGroupId' },
} as const satisfies Record<EntityKind, unknown>;

type EntityRoute = (typeof ENTITY_ROUTES)[EntityKind];

/** `GET /users`, `GET /users/{foreignId}`, and the same for organizations. */
export function registerEntities(app: FastifyInstance, store: Store): void {
  for (const kind of ['user', 'organization'] as const) {
    const route = ENTITY_ROUTES[kind];

    app.get(route.path, async (request, reply) => {
      const { workspace } = request;
      const parsed = parseEntitiesRequest(kind, request.query as QueryParameters, workspace);
      const { limit, ...rest } = parsed;
      const question = { ...rest, rowsMax: limit + 1 };
      return await whileConnected(reply, async (signal) => {
        const entities = limit === 0 ? nothing() : readEntities(store, kind, question, { workspace, signal });
        return await sendJson(reply, answer(route, parsed, entities));
      });
    });

    app.get(`${route.path}/:id`, async (request, reply) => {
      refuseParameters(request.query as QueryParameters);
      const { workspace } = request;
      const { id } = request.params as { id: string };
      return await whileConnected(reply, async (signal) => {
        const question = { id, properties: [], rowsMax: 1 };
        const { value: entity } = await readEntities(store, kind, question, { workspace, signal }).next();
        if (!entity) throw new Problem('not_found', `There is no such ${kind}.`);
        reply.type('application/json; charset=utf-8');
        return await reply.send(entityRecord(route.idName, entity));
      });
    });
  }
}

async function* nothing(): AsyncGenerator<Entity, void, undefined> {}

async function* answer(
  { idName }: EntityRoute,
  { limit, list }: EntitiesRequest,
  entities: AsyncGenerator<Entity, void, undefined>,
): AsyncGenerator<string, void, undefined> {
  let served = 0;
  let lastId = '';
  let nextCursor: string | null = null;
  yield `{"limit":${limit},"results":[`;
  for await (const entity of entities) {
    if (served === limit) {
      nextCursor = encodeCursor(list, [lastId]);
      break;
    }
    yield served === 0 ? entityRecord(idName, entity) : `,${entityRecord(idName, entity)}`;
    lastId = entity.id;
    served += 1;
  }
  yield `],"nextCursor":${JSON.stringify(nextCursor)}}`;
}
