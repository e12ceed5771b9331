import { Readable } from 'node:stream';
import { Problem } from '@sluice/shared/http/problem';
import { parseJson } from '@sluice/shared/json';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { untilStoreAnswers } from '../clickhouse/in-any-store.ts';
import { whileConnected } from '../read-route.ts';
import { reserve } from '../request-memory.ts';
import { SQL_FORMATS } from './sql-formats.ts';
import { parseSqlRequest, type SqlRequest } from './sql-request.ts';
import type { SqlContext, SqlRunner } from './sql-runner.ts';

/** The largest body, in bytes: a statement and parameters of the lengths that are allowed, most of them short. */
export const SQL_BODY_BYTES_MAX = 512 * 1_024;

/** The memory of a body as a multiple of its bytes: the body, its texts, and what is sent to ClickHouse. */
const MEMORY_PER_BYTE = 6;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Registers `POST /queries`: a statement of the client. */
export function registerSql(app: FastifyInstance, runner: SqlRunner): void {
  app.register(async (routes) => {
    routes.removeAllContentTypeParsers();
    routes.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_: FastifyRequest, body: Buffer) =>
      parseBody(body),
    );
    routes.addHook('preParsing', async ({ headers, memory }) => {
      const announced = Number(headers['content-length'] ?? SQL_BODY_BYTES_MAX);
      reserve(memory, MEMORY_PER_BYTE * Math.min(announced, SQL_BODY_BYTES_MAX));
    });
    const options = { bodyLimit: SQL_BODY_BYTES_MAX, config: { scope: 'sql' } } as const;
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

/** @throws {Problem} `malformed_json` */
function parseBody(body: Buffer): unknown {
  try {
    return parseJson(utf8.decode(body));
  } catch (cause) {
    throw new Problem('malformed_json', 'The body is not JSON in UTF-8.', { cause });
  }
}
