import type { FastifyInstance } from 'fastify';
import { sendJson } from '../../http/json-response.ts';
import { isoTime } from '../../records/entities/entity-record.ts';
import type { QueryContext } from '../../store/query.ts';
import { type QueryRead, type ReadDependencies, registerQueryRead } from '../../store/read-route.ts';
import type { MenuRequest } from './event-names.ts';
import { type Menu, MenuReader } from './menu-reader.ts';
import {
  namesParameters,
  parseMenuRequest,
  parseValuesRequest,
  propertiesParameters,
  type ValuesRequest,
} from './menus-parameters.ts';

/** How many results of a menu are sent at a time. */
const RESULTS_OF_CHUNK = 100;

/** Registers `GET /events/names` and `/events/properties`: what there is to choose from. */
export function registerMenus(app: FastifyInstance, deps: ReadDependencies): void {
  const reader = readerOf(deps);
  registerQueryRead(app, {
    path: '/events/names',
    parse: (query) => parseMenuRequest(namesParameters, query),
    ...respondWith((request, context) => reader.names(request, context)),
  });
  registerQueryRead(app, {
    path: '/events/properties',
    parse: (query) => parseMenuRequest(propertiesParameters, query),
    ...respondWith((request, context) => reader.properties(request, context)),
  });
}

/** Returns `GET /events/values`: the values of a field or a property. */
export function valuesRead(deps: ReadDependencies): QueryRead<ValuesRequest> {
  const reader = readerOf(deps);
  return {
    path: '/events/values',
    parse: parseValuesRequest,
    ...respondWith((request, context) => reader.values(request, context)),
  };
}

function readerOf({ config, queryRunner }: ReadDependencies): MenuReader {
  return new MenuReader(queryRunner, config.QUERY_TIMEOUT_MS);
}

function respondWith<Request extends MenuRequest>(
  read: (request: Request, context: QueryContext) => Promise<Menu>,
): Pick<QueryRead<Request>, 'respond'> {
  return {
    respond: async (request, context, reply) => await sendJson(reply, menuJson(request, await read(request, context))),
  };
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
