import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { contextOf, type QueryContext } from '../clickhouse/query.ts';
import { whileConnected } from '../disconnection.ts';
import { isoTime } from '../entities/entity-record.ts';
import { PagePaces } from '../events/page-paces.ts';
import { sendJson } from '../json-response.ts';
import type { ReadDependencies } from '../read-dependencies.ts';
import { type MenuRequest, readEventNames, readNameValues } from './event-names.ts';
import { createSampleReader } from './event-sample.ts';
import {
  namesParameters,
  parseMenuRequest,
  parseValuesRequest,
  propertiesParameters,
  type ValuesRequest,
} from './menus-parameters.ts';
import { PropertyPaths } from './property-paths.ts';
import { CountedValues, type FoundValue, valuesOfProperty } from './property-values.ts';
import { createReportRunner } from './report-runner.ts';

/** A menu as JSON: its results, and how many events they were found in, if they were not counted in all. */
interface Menu {
  readonly results: readonly string[];
  readonly sampledEvents?: number | null;
}

/** How many results of a menu are passed on at a time. */
const RESULTS_OF_CHUNK = 100;

type ReadMenu<Request> = (request: Request, context: QueryContext) => Promise<Menu>;

/** Registers `GET /events/names`, `/events/properties` and `/events/values`: what there is to choose from. */
export function registerMenus(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const runner = createReportRunner(queryRunner);
  const readSample = createSampleReader(runner, new PagePaces(), config.QUERY_TIMEOUT_MS);

  async function handle<Request extends MenuRequest>(
    request: FastifyRequest,
    reply: FastifyReply,
    asked: Request,
    read: ReadMenu<Request>,
  ): Promise<FastifyReply> {
    return await whileConnected(reply, async (signal) => {
      const menu = await read(asked, contextOf(request, signal));
      return await sendJson(reply, menuJson(asked, menu));
    });
  }

  const readNames: ReadMenu<MenuRequest> = async (asked, context) => {
    const names = await readEventNames(runner, asked, context);
    const results = names.map(({ firstSeenMs, lastSeenMs, ...name }) =>
      JSON.stringify({ ...name, firstSeenAt: isoTime(firstSeenMs), lastSeenAt: isoTime(lastSeenMs) }),
    );
    return { results };
  };

  const readProperties: ReadMenu<MenuRequest> = async ({ selection, prefix, limit }, context) => {
    const paths = new PropertyPaths(prefix, context.memory);
    const visit = (text: string, timestampMs: number) => {
      paths.add(text, timestampMs);
      return paths.isFull;
    };
    const sampledEvents = await readSample({ selection, field: 'properties', visit }, context);
    const results = (await paths.first(limit)).map(({ path, types, count, lastSeenMs }) =>
      JSON.stringify({ path, types, share: count / sampledEvents, lastSeenAt: isoTime(lastSeenMs) }),
    );
    return { results, sampledEvents };
  };

  const readValues: ReadMenu<ValuesRequest> = async (asked, context) => {
    const { selection, source, prefix, limit } = asked;
    const { field, property } = source;
    if (field === 'event' || field === 'type') {
      const values = await readNameValues(runner, field, asked, context);
      return { results: values.map((value) => JSON.stringify(value)), sampledEvents: null };
    }
    const counted = new CountedValues(prefix, context.memory);
    const visit = (text: string) => {
      // An identifier that is missing is empty.
      const values = text === '' ? [] : [text];
      counted.add(property === undefined ? values : valuesOfProperty(text, property));
      return counted.isFull;
    };
    const sampledEvents = await readSample({ selection, field, visit }, context);
    return { results: (await counted.first(limit)).map(valueJson), sampledEvents };
  };

  app.get('/events/names', async (request, reply) => {
    const asked = parseMenuRequest(namesParameters, request.query as QueryParameters);
    return await handle(request, reply, asked, readNames);
  });
  app.get('/events/properties', async (request, reply) => {
    const asked = parseMenuRequest(propertiesParameters, request.query as QueryParameters);
    return await handle(request, reply, asked, readProperties);
  });
  app.get('/events/values', async (request, reply) => {
    return await handle(request, reply, parseValuesRequest(request.query as QueryParameters), readValues);
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

function valueJson({ json, count }: FoundValue): string {
  return `{"value":${json},"count":${count}}`;
}

function timeOrNull(ms: number | undefined): string | null {
  return ms === undefined ? null : isoTime(ms);
}
