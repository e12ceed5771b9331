import { Readable } from 'node:stream';
import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import type { CommonDescription } from '../../http/http.ts';
import { filtersOfEvents, querySchema, withIdentity } from '../../records/records.ts';
import { type ExportQuery, type QuerySettings, type ReadDependencies, registerRead } from '../../store/store.ts';
import {
  EXPORT_FORMATS,
  type ExportFormat,
  exportParameters,
  formatOf,
  parseExportRequest,
} from './export-parameters.ts';
import { blockSettings, exportStatements } from './export-query.ts';

/** How long a client may read nothing, in milliseconds; then it is cut off, since it keeps others from exporting. */
const STALL_MS_MAX = 120_000;

const SETTINGS: QuerySettings = {
  // The columns of a table have names of columns of `events`: conditions and order mean the latter.
  prefer_column_name_to_alias: '1',
  // All threads write records, not only the one that merges them.
  query_plan_execute_functions_after_sorting: '0',
  // As JSON.stringify writes them.
  output_format_json_escape_forward_slashes: '0',
  // NULL is an empty field.
  format_csv_null_representation: '',
  output_format_parquet_string_as_string: '1',
  // ClickHouse holds groups of rows in memory until they are whole; of a million rows they would exceed its budget.
  output_format_parquet_row_group_size: '65536',
  output_format_parquet_row_group_size_bytes: '33554432',
};

/** Registers `GET /events/export`: all events that match, as a file. */
export function registerExport(app: FastifyInstance, { queryRunner }: ReadDependencies): void {
  registerRead(app, {
    path: '/events/export',
    describe: describeExport,
    endless: true,
    parse: ({ query, headers }) => parseExportRequest(query, headers.accept),
    async respond(request, given, reply) {
      const format = formatOf(request.format);
      const send = async (bytes: AsyncIterable<Buffer> | Iterable<Buffer>) => {
        reply.type(format.mediaTypes[0] as string);
        reply.header('content-disposition', `attachment; filename="events.${request.format}"`);
        return await reply.send(Readable.from(bytes, { objectMode: false }));
      };
      // Fastify would read the whole export, and send none of it.
      if (reply.request.method === 'HEAD') return await send([]);
      const context = await withIdentity(queryRunner, request.selection, given);
      const blocks = await blockSettings(queryRunner, request, context);
      const query: ExportQuery = {
        statements: () => exportStatements(queryRunner, request, context),
        ...{ kind: 'events_export', pool: 'exports', settings: { ...SETTINGS, ...blocks } },
        ...context,
      };
      const bytes = withTrailer(queryRunner.bytes(query), format);
      // A query that fails at once still becomes an error response.
      const first = await bytes.next();
      return await send(takenInTime(first, bytes, reply));
    },
  });
}

async function* withTrailer(
  bytes: AsyncIterable<Buffer>,
  { Counter, trailer }: ReturnType<typeof formatOf>,
): AsyncGenerator<Buffer, void, undefined> {
  const counter = Counter && new Counter();
  let events = 0;
  for await (const chunk of bytes) {
    events += counter?.count(chunk) ?? 0;
    yield chunk;
  }
  if (trailer) yield Buffer.from(trailer(events));
}

/** Closes the connection when the client has taken no chunk for too long; that ends the query too. */
async function* takenInTime(
  first: IteratorResult<Buffer, void>,
  rest: AsyncGenerator<Buffer, void, undefined>,
  reply: FastifyReply,
): AsyncGenerator<Buffer, void, undefined> {
  for (let next = first; !next.done; next = await rest.next()) {
    const timer = setTimeout(() => reply.raw.destroy(), STALL_MS_MAX);
    try {
      yield next.value;
    } finally {
      clearTimeout(timer);
    }
  }
}

const DESCRIPTIONS: Readonly<Record<ExportFormat, string>> = {
  ndjson:
    'A line for each event: its record, as `GET /events` has it. The last line is `{"complete":true,"events":N}`: without it, the response was cut off.',
  csv: 'RFC 4180, with a line of names first. `properties`, `context` and `traits` are JSON text, a missing identifier is an empty field. The last line is `#complete,N`: without it, the response was cut off.',
  parquet: 'The same columns. Times are timestamps in UTC, a missing identifier is null.',
};

/** Describes `GET /events/export`. */
function describeExport(common: CommonDescription): OperationDescription {
  const content = Object.fromEntries(
    Object.entries(EXPORT_FORMATS).map(([name, { mediaTypes }]) => [
      mediaTypes[0],
      { schema: z.string().meta({ description: DESCRIPTIONS[name as ExportFormat] }) },
    ]),
  );
  return {
    ...common,
    operationId: 'exportEvents',
    summary: 'All events that match, as a file',
    description:
      'All filters have to match. There is no limit on events, bytes or time. Events that become visible after the export began may be in it or not; none is left out or comes twice. When it fails after it began, the connection breaks off: continue with `after`.',
    tag: 'events',
    requestParams: { query: querySchema(exportParameters, filtersOfEvents()) },
    responses: { 200: { description: 'The events, in order.', content } },
  };
}
