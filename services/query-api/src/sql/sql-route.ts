import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { acceptJson } from '../http/request-memory.ts';
import { untilStoreAnswers } from '../store/failover.ts';
import { whileConnected } from '../store/read-route.ts';
import { SQL_FORMATS } from './sql-formats.ts';
import { parseSqlRequest, type SqlRequest } from './sql-request.ts';
import type { SqlContext, SqlRunner } from './sql-runner.ts';

/** The largest body, in bytes: a statement and parameters of the lengths that are allowed, most of them short. */
export const SQL_BODY_BYTES_MAX = 512 * 1_024;

/** Registers `POST /queries`: a statement of the client. */
export function registerSql(app: FastifyInstance, runner: SqlRunner): void {
  app.register(async (routes) => {
    acceptJson(routes, SQL_BODY_BYTES_MAX);
    const options = { bodyLimit: SQL_BODY_BYTES_MAX, config: { scope: 'sql', admission: 'queries' } } as const;
    routes.post('/queries', options, async (request, reply) => {
      const parsed = parseSqlRequest(request.body);
      const { workspace, id: requestId, store, memory, span } = request;
      return await whileConnected(reply, (signal) => {
        const context = { workspace, requestId, store, memory, span, signal };
        return untilStoreAnswers(store, () => respond(runner, parsed, context, reply));
      });
    });
  });
}

async function respond(
  runner: SqlRunner,
  request: SqlRequest,
  context: SqlContext,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const bytes = runner.bytes(request, context);
  // A statement that fails at once still becomes an error response.
  const first = await bytes.next();
  reply.type(SQL_FORMATS[request.format].mediaType);
  return await reply.send(Readable.from(from(first, bytes), { objectMode: false }));
}

async function* from(
  first: IteratorResult<Buffer, void>,
  rest: AsyncGenerator<Buffer, void, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}
