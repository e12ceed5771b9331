import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { encodeCursor } from '../../http/cursor.ts';
import { refuseParameters } from '../../records/filters/parameters.ts';
import type { QueryContext } from '../../store/query.ts';
import { type ReadDependencies, registerRead } from '../../store/read-route.ts';
import { parseDeadLettersRequest } from './dead-letters-parameters.ts';
import { type DeadLetterRow, deadLetterQuery, deadLettersPageQuery } from './dead-letters-query.ts';
import { replayThrough } from './replay.ts';

interface Parts {
  Querystring: QueryParameters;
  Params: { readonly id: string };
}

/** Registers the routes of dead letters, each of the workspace of the key alone. */
export function registerDeadLetters(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const query = { kind: 'dead_letters_page', pool: 'reports' } as const;
  const find = async (id: string, context: QueryContext) => {
    const rows = await queryRunner.all({ ...query, ...context, statement: (tables) => deadLetterQuery(tables, id) });
    const [found] = rows as unknown as [...DeadLetterRow, row: string][];
    if (!found) throw new Problem('not_found', 'The workspace has no such dead letter.');
    return { ...recordOf(found.slice(0, -1) as DeadLetterRow), row: found.at(-1) };
  };

  registerRead(app, {
    path: '/dead-letters',
    scope: 'admin',
    parse: (request) => parseDeadLettersRequest(request.query, request.workspace),
    async respond({ limit, list, ...request }, context, reply) {
      const rows = (await queryRunner.all({
        ...{ ...query, ...context },
        statement: (tables) => deadLettersPageQuery(tables, { ...request, rowsMax: limit + 1 }),
      })) as unknown as DeadLetterRow[];
      const page = rows.slice(0, limit);
      const last = page.at(-1);
      const nextCursor = last && rows.length > limit ? encodeCursor(list, [last[1], last[0]]) : null;
      return await reply.send({ limit, results: page.map(recordOf), nextCursor });
    },
  });

  registerRead(app, {
    path: '/dead-letters/:id',
    scope: 'admin',
    parse: (request) => {
      refuseParameters(request.query);
      return request.params.id;
    },
    respond: async (id, context, reply) => await reply.send(await find(id, context)),
  });

  const admission = { pool: 'forwarded', bytes: 0 } as const;
  app.post<Parts>('/dead-letters/:id/replay', { config: { scope: 'admin', admission } }, async (request, reply) => {
    refuseParameters(request.query);
    const { workspace, id: requestId, store, memory, span } = request;
    const { id } = await find(request.params.id, { workspace, requestId, store, memory, span });
    await replayThrough(config, id);
    return await reply.status(204).send();
  });
}

function recordOf(row: DeadLetterRow) {
  const [id, recordedMs, replayedMs, kind, topic, partition, offset, line, reason, client, bytes] = row;
  return {
    id,
    recordedAt: new Date(recordedMs).toISOString(),
    replayedAt: replayedMs === 0 ? null : new Date(replayedMs).toISOString(),
    ...{ kind, topic, partition, offset, line, reason, client: client === '' ? null : client, bytes },
  };
}
