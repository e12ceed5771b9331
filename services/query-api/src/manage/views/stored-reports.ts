import { type InputError, Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyReply } from 'fastify';
import { reserve } from '../../http/http.ts';
import { refuseErrors } from '../../records/records.ts';
import { funnelRead, retentionRead, seriesRead, valuesRead } from '../../reports/reports.ts';
import { parseSqlRequest, SQL_FORMATS, type SqlContext, type SqlRequest, type SqlRunner } from '../../sql/sql.ts';
import {
  contextOf,
  type QueryRead,
  type ReadDependencies,
  respondToRead,
  untilStoreAnswers,
  whileConnected,
} from '../../store/store.ts';
import type { Report } from './view.ts';

/** The rows of a tile, in bytes of NDJSON. */
export const TILE_SQL_BYTES_MAX = 1_024 * 1_024;

/** A report whose query is stored. */
export interface StoredReport {
  /** @throws {Problem} `invalid_request`, naming every error */
  readonly parse: (query: QueryParameters) => void;
  /** Responds as the route of the report does. */
  readonly respond: (
    query: QueryParameters,
    request: Parameters<typeof respondToRead>[2],
    reply: FastifyReply,
  ) => Promise<FastifyReply>;
}

export type StoredReports = Readonly<Record<Report, StoredReport>>;

/** Returns the reports that views can be of. */
export function storedReports(deps: ReadDependencies & { readonly sqlRunner: SqlRunner }): StoredReports {
  return {
    series: stored(seriesRead(deps)),
    funnel: stored(funnelRead(deps)),
    retention: stored(retentionRead(deps)),
    values: stored(valuesRead(deps)),
    sql: storedSql(deps.sqlRunner),
  };
}

function stored<Request>(read: QueryRead<Request>): StoredReport {
  return {
    parse: (query) => void read.parse(query),
    respond: (query, request, reply) => respondToRead(read, read.parse(query), request, reply),
  };
}

/**
 * Returns the report of a statement. Its rows are NDJSON, a line for each. All are read before the first is sent: a statement has its slot
 * until its last row is read, and whoever has a link could keep it by reading slowly.
 */
function storedSql(runner: SqlRunner): StoredReport {
  return {
    parse: (query) => void sqlOf(query),
    respond: async (query, request, reply) => {
      const parsed = sqlOf(query);
      reserve(request.memory, TILE_SQL_BYTES_MAX);
      return await whileConnected(reply, async (signal) => {
        const context = { ...contextOf(request), signal };
        const rows = await untilStoreAnswers(request.store, () => rowsOf(runner, parsed, context));
        return await reply.type(SQL_FORMATS.ndjson.mediaType).send(rows);
      });
    },
  };
}

/** @throws {Problem} `query_too_expensive` beyond {@link TILE_SQL_BYTES_MAX}, and as {@link SqlRunner.bytes} does */
async function rowsOf(runner: SqlRunner, request: SqlRequest, context: SqlContext): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of runner.bytes(request, context)) {
      bytes += chunk.length;
      if (bytes > TILE_SQL_BYTES_MAX) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    // Who reads a tile may read neither the statement nor the values that ClickHouse quotes.
    throw error instanceof Problem && error.code === 'invalid_sql' ? notRun() : error;
  }
  return Buffer.concat(chunks);
}

function tooLarge(): Problem {
  return new Problem('query_too_expensive', 'The result of the SQL of this view is larger than a mebibyte.');
}

function notRun(): Problem {
  return new Problem('invalid_sql', 'The SQL of this view cannot be run; POST /queries says why.');
}

/** @throws {Problem} `invalid_request` */
function sqlOf(query: QueryParameters): SqlRequest {
  const { sql, ...others } = query;
  refuseErrors(
    Object.keys(others).map((path): InputError => ({ path, code: 'invalid', message: 'is no parameter of SQL' })),
  );
  return parseSqlRequest({ sql: sql?.[0], format: 'ndjson' });
}
