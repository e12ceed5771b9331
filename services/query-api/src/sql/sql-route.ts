import { Readable } from 'node:stream';
import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import type { QueryConfig } from '../config.ts';
import { acceptJson, BODY_CODES, type CommonDescription } from '../http/http.ts';
import { contextOf, untilStoreAnswers, whileConnected } from '../store/store.ts';
import { parseSqlRequest, SQL_FORMATS, type SqlFormatName, type SqlRequest, sqlRequestSchema } from './sql-request.ts';
import type { SqlContext, SqlRunner } from './sql-runner.ts';

/** The largest body, in bytes: a statement and parameters of the lengths that are allowed, most of them short. */
export const SQL_BODY_BYTES_MAX = 512 * 1_024;

/** Registers `POST /queries`: a statement of the client. */
export function registerSql(app: FastifyInstance, runner: SqlRunner): void {
  acceptJson(app, SQL_BODY_BYTES_MAX);
  const options = {
    bodyLimit: SQL_BODY_BYTES_MAX,
    config: { scope: 'sql', admission: 'queries', describe: describeSql },
  } as const;
  app.post('/queries', options, async (request, reply) => {
    const parsed = parseSqlRequest(request.body);
    return await whileConnected(reply, (signal) => {
      const context = { ...contextOf(request), signal };
      return untilStoreAnswers(request.store, () => respond(runner, parsed, context, reply));
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

const DESCRIPTIONS: Readonly<Record<Exclude<SqlFormatName, 'json'>, string>> = {
  ndjson: 'A JSON object for each row.',
  csv: 'RFC 4180, with a line of names first. NULL is an empty field.',
  parquet: 'A Parquet file.',
  arrow: 'A stream of Arrow.',
};

const EXAMPLES = {
  count: { summary: 'Events by name', value: { sql: 'SELECT event, count() AS events FROM events GROUP BY event' } },
  params: {
    summary: 'With parameters',
    value: {
      sql: "SELECT user_id, sum(JSONExtractFloat(properties, 'amount')) AS amount FROM events WHERE event = {event:String} GROUP BY user_id",
      params: { event: 'invoice_paid' },
      format: 'csv',
    },
  },
};

/** Describes `POST /queries`. */
function describeSql(common: CommonDescription, config: QueryConfig): OperationDescription {
  const number = new Intl.NumberFormat('en');
  const resultSchema = z
    .object({
      meta: z
        .array(z.object({ name: z.string(), type: z.string() }))
        .meta({ description: 'The columns, with their types in ClickHouse.' }),
      data: z.array(z.record(z.string(), z.unknown())).meta({ description: 'The rows.' }),
      rows: z.int(),
      rows_before_limit_at_least: z.int().optional(),
    })
    .meta({ id: 'SqlResult' });
  const content = {
    [SQL_FORMATS.json.mediaType]: { schema: resultSchema },
    ...Object.fromEntries(
      Object.entries(DESCRIPTIONS).map(([name, description]) => [
        SQL_FORMATS[name as SqlFormatName].mediaType,
        { schema: z.string().meta({ description }) },
      ]),
    ),
  };
  return {
    ...common,
    scope: 'sql',
    keyOptional: false,
    codes: [...common.codes, 'invalid_sql', 'sql_not_available', ...BODY_CODES],
    operationId: 'querySql',
    summary: 'Run a SELECT',
    description: `One SELECT in the SQL of ClickHouse over \`events\`, \`users\` and \`organizations\`, which have the rows of the key's workspace alone. At most ${number.format(config.SQL_RESULT_ROWS_MAX)} rows and ${number.format(config.QUERY_RESULT_BYTES_MAX)} bytes. When it fails after the response has begun, the connection breaks off.`,
    tag: 'sql',
    requestBody: {
      required: true,
      content: { 'application/json': { schema: sqlRequestSchema, examples: EXAMPLES } },
    },
    responses: { 200: { description: 'The rows, in the format that was asked for.', content } },
  };
}
