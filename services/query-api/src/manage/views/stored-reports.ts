import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyReply } from 'fastify';
import { funnelRead } from '../../reports/funnel/funnel.ts';
import { valuesRead } from '../../reports/menus/menus.ts';
import { retentionRead } from '../../reports/retention/retention.ts';
import { seriesRead } from '../../reports/series/series.ts';
import { type QueryRead, type ReadDependencies, respondToRead } from '../../store/read-route.ts';
import type { Report } from './view.ts';

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

/** Returns the reports that views can be of. */
export function storedReports(deps: ReadDependencies): Readonly<Record<Report, StoredReport>> {
  return {
    series: stored(seriesRead(deps)),
    funnel: stored(funnelRead(deps)),
    retention: stored(retentionRead(deps)),
    values: stored(valuesRead(deps)),
  };
}

function stored<Request>(read: QueryRead<Request>): StoredReport {
  return {
    parse: (query) => void read.parse(query),
    respond: (query, request, reply) => respondToRead(read, read.parse(query), request, reply),
  };
}
