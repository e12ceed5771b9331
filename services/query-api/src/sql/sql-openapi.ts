import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import type { QueryConfig } from '../config.ts';
import type { CommonDescription } from '../http/openapi-schemas.ts';
import { SQL_FORMATS, type SqlFormatName } from './sql-formats.ts';
import { sqlRequestSchema } from './sql-request.ts';

const DESCRIPTIONS: Readonly<Record<Exclude<SqlFormatName, 'json'>, string>> = {
  ndjson: 'A JSON object for each row.',
  csv: 'RFC 4180, with a line of names first. NULL is an empty field.',
  parquet: 'A Parquet file.',
  arrow: 'A stream of Arrow.',
};

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
export function sqlPaths(common: CommonDescription, config: QueryConfig): PathDescriptions {
  const number = new Intl.NumberFormat('en');
  return {
    '/queries': {
      post: {
        ...common,
        scope: 'sql',
        keyOptional: false,
        codes: [
          ...common.codes,
          'invalid_sql',
          'sql_not_available',
          'malformed_json',
          'body_too_large',
          'unsupported_media_type',
        ],
        operationId: 'querySql',
        summary: 'Run a SELECT',
        description: `One SELECT in the SQL of ClickHouse over \`events\`, \`users\` and \`organizations\`, which have the rows of the key's workspace alone. At most ${number.format(config.SQL_RESULT_ROWS_MAX)} rows and ${number.format(config.QUERY_RESULT_BYTES_MAX)} bytes. When it fails after the response has begun, the connection breaks off.`,
        tag: 'sql',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: sqlRequestSchema, examples: EXAMPLES } },
        },
        responses: { 200: { description: 'The rows, in the format that was asked for.', content } },
      },
    },
  };
}
