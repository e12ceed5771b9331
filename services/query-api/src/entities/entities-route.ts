import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import type { QueryRunner } from '../clickhouse/query-runner.ts';
import type { QueryConfig } from '../config.ts';
import { encodeCursor } from '../cursor.ts';
import { whileConnected } from '../disconnection.ts';
import { refuseParameters } from '../filters/parameters.ts';
import { sendJson } from '../json-response.ts';
import { type EntitiesRequest, parseEntitiesRequest } from './entities-parameters.ts';
import { readEntity, readPage, withinTime } from './entities-reader.ts';
import { ENTITY_KINDS, ENTITY_ROUTES, type EntityRoute } from './entity-kinds.ts';
import { type Entity, entityRecord } from './entity-record.ts';

/** Registers `GET /users`, `GET /users/{foreignId}`, and the same for organizations. */
export function registerEntities(app: FastifyInstance, config: QueryConfig, queryRunner: QueryRunner): void {
  for (const kind of ENTITY_KINDS) {
    const route = ENTITY_ROUTES[kind];

    app.get(route.path, async (request, reply) => {
      const { workspace } = request;
      const parsed = parseEntitiesRequest(kind, request.query as QueryParameters, workspace);
      const { limit, after = '', properties } = parsed;
      return await whileConnected(reply, async (signal) => {
        const run = withinTime(queryRunner, { workspace, requestId: request.id, signal }, config.QUERY_TIMEOUT_MS);
        const entities = limit === 0 ? noEntities() : readPage(run, { kind, after, properties, rowsMax: limit + 1 });
        return await sendJson(reply, pageJson(route, parsed, entities));
      });
    });

    app.get(`${route.path}/:id`, async (request, reply) => {
      refuseParameters(request.query as QueryParameters);
      const { workspace } = request;
      const { id } = request.params as { id: string };
      return await whileConnected(reply, async (signal) => {
        const context = { workspace, requestId: request.id, signal };
        const entity = await readEntity(withinTime(queryRunner, context, config.QUERY_TIMEOUT_MS), kind, id);
        if (!entity) throw new Problem('not_found', `There is no such ${kind}.`);
        reply.type('application/json; charset=utf-8');
        return await reply.send(entityRecord(route.idName, entity));
      });
    });
  }
}

async function* noEntities(): AsyncGenerator<Entity, void, undefined> {}

/** The JSON of a page, in chunks. */
async function* pageJson(
  { idName }: EntityRoute,
  { limit, list }: EntitiesRequest,
  entities: AsyncGenerator<Entity, void, undefined>,
): AsyncGenerator<string, void, undefined> {
  let count = 0;
  let lastId = '';
  let nextCursor: string | null = null;
  yield `{"limit":${limit},"results":[`;
  for await (const entity of entities) {
    if (count === limit) {
      nextCursor = encodeCursor(list, [lastId]);
      break;
    }
    yield count === 0 ? entityRecord(idName, entity) : `,${entityRecord(idName, entity)}`;
    lastId = entity.id;
    count += 1;
  }
  yield `],"nextCursor":${JSON.stringify(nextCursor)}}`;
}
