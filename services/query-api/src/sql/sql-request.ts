import { parseBody } from '@sluice/shared/http/problem';
import { z } from 'zod';
import { PARAM_CHARACTERS_MAX, STATEMENT_BYTES_MAX, STATEMENT_PARAMS_MAX } from '../http/http.ts';
import type { SqlValue } from '../store/store.ts';

/** How a result is written. */
interface SqlFormat {
  /** ClickHouse's name. */
  readonly clickHouse: string;
  readonly mediaType: string;
}

/** The formats of a result, by their names in a request. */
export const SQL_FORMATS = {
  json: { clickHouse: 'JSON', mediaType: 'application/json; charset=utf-8' },
  ndjson: { clickHouse: 'JSONEachRow', mediaType: 'application/x-ndjson' },
  csv: { clickHouse: 'CSVWithNames', mediaType: 'text/csv' },
  parquet: { clickHouse: 'Parquet', mediaType: 'application/vnd.apache.parquet' },
  arrow: { clickHouse: 'ArrowStream', mediaType: 'application/vnd.apache.arrow.stream' },
} as const satisfies Readonly<Record<string, SqlFormat>>;

export type SqlFormatName = keyof typeof SQL_FORMATS;

const SQL_FORMAT_NAMES = Object.keys(SQL_FORMATS) as [SqlFormatName, ...SqlFormatName[]];

const text = z
  .string()
  .max(PARAM_CHARACTERS_MAX, `must have at most ${PARAM_CHARACTERS_MAX} characters`)
  .refine((value) => !value.includes('\0'), 'must not contain the character U+0000');

const number = z
  .number()
  .refine(
    (value) => !Number.isInteger(value) || Number.isSafeInteger(value),
    'has too many digits; send it as a string',
  );

const name = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'must be letters, digits and underscores');

const value = z.union([text, number, z.boolean(), z.array(text), z.array(number)]);

/** The body of `POST /queries`. */
export const sqlRequestSchema = z
  .strictObject({
    sql: z
      .string()
      .refine((sql) => sql.trim() !== '', 'must not be empty')
      .refine((sql) => Buffer.byteLength(sql) <= STATEMENT_BYTES_MAX, `must have at most ${STATEMENT_BYTES_MAX} bytes`)
      .refine((sql) => !sql.includes('\0'), 'must not contain the character U+0000')
      .meta({
        description:
          'One SELECT in the SQL of ClickHouse, over `events`, `users` and `organizations`. It has no SETTINGS, FORMAT or INTO OUTFILE.',
      }),
    params: z
      .record(name, value)
      .refine(
        (params) => Object.keys(params).length <= STATEMENT_PARAMS_MAX,
        `must have at most ${STATEMENT_PARAMS_MAX} members`,
      )
      .default({})
      .meta({ description: 'Values of the parameters that the statement has: `{name:Type}`.' }),
    format: z.enum(SQL_FORMAT_NAMES).default('json').meta({ description: 'How the result is written.' }),
  })
  .meta({ id: 'SqlRequest' });

export interface SqlRequest {
  readonly sql: string;
  readonly params: Readonly<Record<string, SqlValue>>;
  readonly format: z.output<typeof sqlRequestSchema>['format'];
}

/** @throws {Problem} `invalid_request`, naming every error */
export function parseSqlRequest(body: unknown): SqlRequest {
  const { params, ...rest } = parseBody(sqlRequestSchema, body);
  const values = Object.entries(params).map(([key, given]) => [
    key,
    typeof given === 'boolean' ? String(given) : given,
  ]);
  return { ...rest, params: Object.fromEntries(values) };
}
