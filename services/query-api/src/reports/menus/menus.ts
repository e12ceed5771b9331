import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import type { QueryContext } from '../../clickhouse/query.ts';
import { isoTime } from '../../entities/entity-record.ts';
import { sendJson } from '../../json-response.ts';
import { type ReadDependencies, registerRead } from '../../read-route.ts';
import type { MenuRequest } from './event-names.ts';
import { type Menu, MenuReader } from './menu-reader.ts';
import { namesParameters, parseMenuRequest, parseValuesRequest, propertiesParameters } from './menus-parameters.ts';

/** How many results of a menu are sent at a time. */
const RESULTS_OF_CHUNK = 100;

/** Registers `GET /events/names`, `/events/properties` and `/events/values`: what there is to choose from. */
export function registerMenus(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const reader = new MenuReader(queryRunner, config.QUERY_TIMEOUT_MS);

  registerMenu(app, {
    path: '/events/names',
    parse: (query) => parseMenuRequest(namesParameters, query),
    read: (request, context) => reader.names(request, context),
  });

  registerMenu(app, {
    path: '/events/properties',
    parse: (query) => parseMenuRequest(propertiesParameters, query),
    read: (request, context) => reader.properties(request, context),
  });

  registerMenu(app, {
    path: '/events/values',
    parse: parseValuesRequest,
    read: (request, context) => reader.values(request, context),
  });
}

interface MenuRoute<Request> {
  readonly path: string;
  readonly parse: (query: QueryParameters) => Request;
  readonly read: (request: Request, context: QueryContext) => Promise<Menu>;
}

function registerMenu<Request extends MenuRequest>(app: FastifyInstance, route: MenuRoute<Request>): void {
  registerRead(app, {
    path: route.path,
    parse: ({ query }) => route.parse(query),
    async respond(request, context, reply) {
      return await sendJson(reply, menuJson(request, await route.read(request, context)));
    },
  });
}

async function* menuJson(
  { selection: { startMs, endMs } }: MenuRequest,
  { results, sampledEvents }: Menu,
): AsyncGenerator<string, void, undefined> {
  const dates = JSON.stringify({ startDate: timeOrNull(startMs), endDate: timeOrNull(endMs) }).slice(1, -1);
  const sampled = sampledEvents === undefined ? '' : `,"sampledEvents":${sampledEvents}`;
  yield `{${dates},"results":[`;
  for (let first = 0; first < results.length; first += RESULTS_OF_CHUNK) {
    yield `${first === 0 ? '' : ','}${results.slice(first, first + RESULTS_OF_CHUNK).join(',')}`;
  }
  yield `]${sampled}}`;
}

function timeOrNull(ms: number | undefined): string | null {
  return ms === undefined ? null : isoTime(ms);
}
