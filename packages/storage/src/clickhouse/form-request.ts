import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ClickHouseSettings, CommandResult } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { inLargeChunks } from './large-chunks.ts';

/** Rows that travel with a statement, which reads them from a table of this name. */
export interface SentTable {
  readonly name: string;
  readonly format: 'JSONEachRow' | 'Native';
  /** The columns of the rows, each with its type. */
  readonly columns: Readonly<Record<string, string>>;
  /** The bytes of the rows, in the format. */
  readonly chunks: readonly Uint8Array[];
}

/** A statement, as ClickHouse's client takes one, with the tables that it reads besides those of the database. */
export interface FormRequest {
  readonly query: string;
  readonly query_id: string;
  readonly query_params: Record<string, unknown>;
  readonly clickhouse_settings: ClickHouseSettings;
  readonly tables: readonly SentTable[];
}

export interface FormResponse {
  /** Has to be read to its end. */
  readonly stream: Readable;
  readonly summary?: CommandResult['summary'];
}

/** Sends a statement. @throws ClickHouse's errors */
export type SendForm = (request: FormRequest) => Promise<FormResponse>;

/**
 * Returns what sends statements with their tables as the parts of a form.
 *
 * @see https://clickhouse.com/docs/engines/table-engines/special/external-data
 */
export function formSender(client: ClickHouseClient): SendForm {
  return async ({ tables, clickhouse_settings, ...request }) => {
    if (tables.length === 0) return await client.exec({ ...request, clickhouse_settings });
    const { headers, chunks } = formOf(tables);
    return await client.exec({
      ...request,
      clickhouse_settings: { ...clickhouse_settings, ...formatsOf(tables) },
      http_headers: headers,
      values: Readable.from(inLargeChunks(chunks), { objectMode: false }),
    });
  };
}

/** How ClickHouse is to read each part of a form: parameters of the HTTP interface, sent like settings. */
function formatsOf(tables: readonly SentTable[]): ClickHouseSettings {
  const entries = tables.flatMap(({ name, format, columns }) => {
    const structure = Object.entries(columns).map(([column, type]) => `${column} ${type}`);
    return [
      [`${name}_format`, format],
      [`${name}_structure`, structure.join(', ')],
    ];
  });
  return Object.fromEntries(entries) as ClickHouseSettings;
}

/** Returns a form with a part for each table. Its length is told, so that nobody has to send it on in chunks. */
function formOf(tables: readonly SentTable[]): {
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly Uint8Array[];
} {
  // Nobody can foresee it, so no row has it.
  const boundary = randomUUID();
  const chunks = tables.flatMap(({ name, chunks: rows }) => [
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"; filename="${name}"\r\n\r\n`),
    ...rows,
    Buffer.from('\r\n'),
  ]);
  chunks.push(Buffer.from(`--${boundary}--\r\n`));
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
  return {
    headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}`, 'Content-Length': String(bytes) },
    chunks,
  };
}
