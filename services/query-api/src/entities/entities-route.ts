import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { QueryRunner } from '../clickhouse/query-runner.ts';
import type { QueryConfig } from '../config.ts';
import { encodeCursor } from '../cursor.ts';
import { whileConnected } from '../disconnection.ts';
import { refuseParameters } from '../filters/parameters.ts';
import { sendJson } from '../json-response.ts';
import { type ListRequest, parseEntitiesRequest, parseMembershipsRequest } from './entities-parameters.ts';
import { entityExists, type RunQuery, readEntity, readPage, withinTime } from './entities-reader.ts';
import { ENTITY_KINDS, ENTITY_ROUTES, noSuchEntity, OTHER_KIND } from './entity-kinds.ts';
import { entityRecord, membershipRecord } from './entity-record.ts';
import { readMemberships } from './memberships-reader.ts';

/** Registers `GET /users`, `GET /users/{foreignId}`, its organizations, and the same for organizations. */
export function registerEntities(app: FastifyInstance, config: QueryConfig, queryRunner: QueryRunner): void {
  for (const kind of ENTITY_KINDS) {
    const { path, idName } = ENTITY_ROUTES[kind];
    const other = ENTITY_ROUTES[OTHER_KIND[kind]];

    async function handle(
      request: FastifyRequest,
      reply: FastifyReply,
      respond: (run: RunQuery) => Promise<FastifyReply>,
    ): Promise<FastifyReply> {
      const { workspace, id: requestId } = request;
      return await whileConnected(reply, async (signal) =>
        respond(withinTime(queryRunner, { workspace, requestId, signal }, config.QUERY_TIMEOUT_MS)),
      );
    }

    app.get(path, async (request, reply) => {
      const parsed = parseEntitiesRequest(kind, request.query as QueryParameters, request.workspace);
      const { limit, after, properties } = parsed;
      return await handle(request, reply, async (run) => {
        const entities = limit === 0 ? none() : readPage(run, { kind, after, properties, rowsMax: limit + 1 });
        return await sendJson(
          reply,
          pageJson(parsed, entities, (entity) => entityRecord(idName, entity)),
        );
      });
    });

    app.get(`${path}/:id`, async (request, reply) => {
      refuseParameters(request.query as QueryParameters);
      const { id } = request.params as { id: string };
      return await handle(request, reply, async (run) => {
        const entity = await readEntity(run, kind, id);
        if (!entity) throw noSuchEntity(kind);
        reply.type('application/json; charset=utf-8');
        return await reply.send(entityRecord(idName, entity));
      });
    });

    app.get(`${path}/:id${other.path}`, async (request, reply) => {
      const { id } = request.params as { id: string };
      const parsed = parseMembershipsRequest(kind, id, request.query as QueryParameters, request.workspace);
      const { limit, after } = parsed;
      return await handle(request, reply, async (run) => {
        if (!(await entityExists(run, kind, id))) throw noSuchEntity(kind);
        const memberships = limit === 0 ? none() : readMemberships(run, { kind, id, after, rowsMax: limit + 1 });
        return await sendJson(
          reply,
          pageJson(parsed, memberships, (membership) => membershipRecord(other.idName, membership)),
        );
      });
    });
  }
}

async function* none(): AsyncGenerator<never, void, undefined> {}

/** The JSON of a page, in chunks. */
async function* pageJson<Item extends { readonly id: string }>(
  { limit, list }: ListRequest,
  items: AsyncGenerator<Item, void, undefined>,
  recordOf: (item: Item) => string,
): AsyncGenerator<string, void, undefined> {
  let count = 0;
  let lastId = '';
  let nextCursor: string | null = null;
  yield `{"limit":${limit},"results":[`;
  for await (const item of items) {
    if (count === limit) {
      nextCursor = encodeCursor(list, [lastId]);
      break;
    }
    yield count === 0 ? recordOf(item) : `,${recordOf(item)}`;
    lastId = item.id;
    count += 1;
  }
  yield `],"nextCursor":${JSON.stringify(nextCursor)}}`;
}
