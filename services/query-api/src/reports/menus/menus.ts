import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { type CommonDescription, NAME_DOTS_MAX, once, sendJson, timeSchema } from '../../http/http.ts';
import { filtersOfEvents, isoTime, type ParameterShape, querySchema, withIdentity } from '../../records/records.ts';
import {
  type QueryContext,
  type QueryRead,
  type QueryRunner,
  type ReadDependencies,
  registerQueryRead,
} from '../../store/store.ts';
import { PROPERTIES } from '../group-key.ts';
import { type MenuRequest, readEventNames, readNameValues } from './event-names.ts';
import {
  SAMPLE_CHARACTERS_MAX,
  SAMPLE_EVENTS_MAX,
  SAMPLE_OWNERS_MAX,
  type SampledOwner,
  SampledOwners,
  SampleReader,
} from './event-sample.ts';
import {
  CountedValues,
  type FoundValue,
  JSON_TYPES,
  MENU_ENTRIES_MAX,
  NAME_CHARACTERS_MAX,
  NAMES_CHARACTERS_MAX,
  PropertyPaths,
  valuesOfProperty,
} from './menu-entries.ts';
import {
  namesParameters,
  type PropertiesRequest,
  parseNamesRequest,
  parsePropertiesRequest,
  parseValuesRequest,
  propertiesParameters,
  type ValuesRequest,
  valuesParameters,
} from './menus-parameters.ts';

/** How many results of a menu are sent at a time. */
const RESULTS_OF_CHUNK = 100;

/** Registers `GET /events/names` and `/events/properties`: what there is to choose from. */
export function registerMenus(app: FastifyInstance, deps: ReadDependencies): void {
  const reader = readerOf(deps);
  registerQueryRead(app, {
    path: '/events/names',
    describe: describeNames,
    parse: parseNamesRequest,
    ...respondWith(deps, (request, context) => reader.names(request, context)),
  });
  registerQueryRead(app, {
    path: '/events/properties',
    describe: describeProperties,
    parse: parsePropertiesRequest,
    ...respondWith(deps, (request: PropertiesRequest, context) => reader.properties(request, context)),
  });
}

/** Returns `GET /events/values`: the values of a field or a property. */
export function valuesRead(deps: ReadDependencies): QueryRead<ValuesRequest> {
  const reader = readerOf(deps);
  return {
    path: '/events/values',
    describe: describeValues,
    parse: parseValuesRequest,
    ...respondWith(deps, (request, context) => reader.values(request, context)),
  };
}

function readerOf({ config, queryRunner }: ReadDependencies): MenuReader {
  return new MenuReader(queryRunner, config.QUERY_TIMEOUT_MS);
}

function respondWith<Request extends MenuRequest>(
  { queryRunner }: ReadDependencies,
  read: (request: Request, context: QueryContext) => Promise<Menu>,
): Pick<QueryRead<Request>, 'respond'> {
  return {
    async respond(request, context, reply) {
      const known = await withIdentity(queryRunner, request.selection, context);
      return await sendJson(reply, menuJson(request, await read(request, known)));
    },
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

/** What there is to choose from. */
export interface Menu {
  /** As JSON. */
  readonly results: readonly string[];
  /** In how many events they were found; `null` when they were counted in all. Names have none. */
  readonly sampledEvents?: number | null;
}

/** Reads what there is to choose from. */
export class MenuReader {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #samples: SampleReader;
  readonly #owners: SampledOwners;

  /** @param timeoutMs how long a sample may take */
  constructor(queryRunner: Pick<QueryRunner, 'rows' | 'all'>, timeoutMs: number) {
    this.#queryRunner = queryRunner;
    this.#samples = new SampleReader(queryRunner, timeoutMs);
    this.#owners = new SampledOwners(queryRunner, this.#samples, timeoutMs);
  }

  /** Reads names and types of events. */
  async names(request: MenuRequest, context: QueryContext): Promise<Menu> {
    const names = await readEventNames(this.#queryRunner, request, context);
    const results = names.map(({ firstSeenMs, lastSeenMs, ...name }) =>
      JSON.stringify({ ...name, firstSeenAt: isoTime(firstSeenMs), lastSeenAt: isoTime(lastSeenMs) }),
    );
    return { results };
  }

  /** Reads the names of properties. */
  async properties({ selection, prefix, limit, of }: PropertiesRequest, context: QueryContext): Promise<Menu> {
    const paths = new PropertyPaths(prefix, context.memory, of === 'event' ? PROPERTIES : `${of}.${PROPERTIES}`);
    const visit = (text: string, timestampMs: number) => {
      paths.add(text, timestampMs);
      return paths.isFull;
    };
    const sampledEvents = await (of === 'event'
      ? this.#samples.read({ selection, field: 'properties', visit }, context)
      : this.#owners.read({ selection, owner: of, visit: (one) => addPaths(paths, one) }, context));
    const results = (await paths.first(limit)).map(({ path, types, count, lastSeenMs }) =>
      JSON.stringify({ path, types, share: count / sampledEvents, lastSeenAt: isoTime(lastSeenMs) }),
    );
    return { results, sampledEvents };
  }

  /** Reads the values of a field or a property. */
  async values(request: ValuesRequest, context: QueryContext): Promise<Menu> {
    const { selection, source, prefix, limit } = request;
    const counted = new CountedValues(prefix, context.memory);
    if ('owner' in source) {
      const visit = (one: SampledOwner) => addValues(counted, source.property, one);
      const sampledEvents = await this.#owners.read({ selection, owner: source.owner, visit }, context);
      return { results: (await counted.first(limit)).map(valueJson), sampledEvents };
    }
    const { field, property } = source;
    if (field === 'event' || field === 'type') {
      const values = await readNameValues(this.#queryRunner, field, request, context);
      return { results: values.map((value) => JSON.stringify(value)), sampledEvents: null };
    }
    const visit = (text: string) => {
      // An identifier that is missing is empty.
      const values = text === '' ? [] : [text];
      counted.add(property === undefined ? values : valuesOfProperty(text, property));
      return counted.isFull;
    };
    const sampledEvents = await this.#samples.read({ selection, field, visit }, context);
    return { results: (await counted.first(limit)).map(valueJson), sampledEvents };
  }
}

/** Adds the names of an owner's properties, and returns whether the menu is full. */
async function addPaths(paths: PropertyPaths, { entity, events, lastMs }: SampledOwner): Promise<boolean> {
  paths.begin(events);
  for await (const properties of entity.properties) {
    for (const [name, json] of properties) paths.addPart(`{${JSON.stringify(name)}:${json}}`, lastMs);
  }
  return paths.isFull;
}

/** Adds the values of an owner's property, and returns whether the menu is full. */
async function addValues(counted: CountedValues, name: string, { entity, events }: SampledOwner): Promise<boolean> {
  const values: unknown[] = [];
  for await (const properties of entity.properties) {
    for (const [property, json] of properties) {
      if (name !== property && !name.startsWith(`${property}.`)) continue;
      values.push(...valuesOfProperty(`{${JSON.stringify(property)}:${json}}`, name));
    }
  }
  counted.add(values, events);
  return counted.isFull;
}

function valueJson({ json, count }: FoundValue): string {
  return `{"value":${json},"count":${count}}`;
}

function menuDates() {
  const date = timeSchema.nullable().meta({ description: 'As it was applied; `null` without one.' });
  return { startDate: date, endDate: date };
}

const countSchema = () => z.int().min(1);
const sampledEventsSchema = () => z.int().min(0);

/** Returns the schema of the response of `GET /events/values`. */
export const valuesSchema = once(() => {
  const value = z
    .object({
      value: z.unknown().meta({ description: 'Of its JSON type, with all digits of a number.' }),
      count: countSchema(),
    })
    .meta({ id: 'EventValue' });
  return z
    .object({ ...menuDates(), results: z.array(value), sampledEvents: sampledEventsSchema().nullable() })
    .meta({ id: 'EventValues' });
});

function sampleText(): string {
  const number = new Intl.NumberFormat('en');
  return `the newest ${number.format(SAMPLE_EVENTS_MAX)} events that match; fewer when these have more than ${number.format(SAMPLE_CHARACTERS_MAX)} characters to read or ${number.format(MENU_ENTRIES_MAX)} different results, and of properties of users or organizations when they are of ${number.format(SAMPLE_OWNERS_MAX)} of these`;
}

/** Describes `GET /events/names`. */
function describeNames(common: CommonDescription): OperationDescription {
  const name = z
    .object({
      event: z.string(),
      type: z.string(),
      count: countSchema(),
      firstSeenAt: timeSchema,
      lastSeenAt: timeSchema,
    })
    .meta({ id: 'EventName' });
  return {
    ...describeMenu(common, {
      parameters: namesParameters,
      schema: z.object({ ...menuDates(), results: z.array(name) }).meta({ id: 'EventNames' }),
      result: {
        event: 'signed_up',
        type: 'track',
        count: 12,
        firstSeenAt: '2026-01-01T09:00:00.000Z',
        lastSeenAt: '2026-03-01T12:00:00.000Z',
      },
    }),
    operationId: 'listEventNames',
    summary: 'The names and types of events, the most frequent first',
    description: 'Every number is exact. Without filters on anything but `event` and `type`, few rows are read.',
  };
}

/** Describes `GET /events/properties`. */
function describeProperties(common: CommonDescription): OperationDescription {
  const property = z
    .object({
      path: z.string().meta({ description: 'As a filter names it.' }),
      types: z.array(z.enum(JSON_TYPES)).min(1).meta({ description: 'The types of its values.' }),
      share: z.number().min(0).max(1).meta({ description: 'The part of the sampled events that have it.' }),
      lastSeenAt: timeSchema.meta({ description: 'The time of the newest of these events that has it.' }),
    })
    .meta({ id: 'EventProperty' });
  return {
    ...describeMenu(common, {
      parameters: propertiesParameters,
      schema: z
        .object({ ...menuDates(), results: z.array(property), sampledEvents: sampledEventsSchema() })
        .meta({ id: 'EventProperties' }),
      result: { path: 'properties.plan', types: ['string'], share: 1, lastSeenAt: '2026-03-01T12:00:00.000Z' },
      sampledEvents: 12,
    }),
    operationId: 'listEventProperties',
    summary: 'The properties of events, the most frequent first',
    description: `Of ${sampleText()}. A path reaches into objects by dots, as filters do, and not into the items of arrays. Names with more than ${NAME_DOTS_MAX} dots or ${NAME_CHARACTERS_MAX} characters are left out. Names of ${new Intl.NumberFormat('en').format(NAMES_CHARACTERS_MAX)} characters together also end the sample.`,
  };
}

/** Describes `GET /events/values`. */
function describeValues(common: CommonDescription): OperationDescription {
  return {
    ...describeMenu(common, {
      parameters: valuesParameters,
      schema: valuesSchema(),
      result: { value: 'pro', count: 12 },
      sampledEvents: 12,
    }),
    operationId: 'listEventValues',
    summary: 'The values of a property or a field, the most frequent first',
    description: `Of ${sampleText()}. Of \`event\` and \`type\`, all events are counted, and \`sampledEvents\` is \`null\`. The count of a value says how many events a filter by this value finds: an item of an array is a value too. An event without the property, or without the identifier, has no value.`,
  };
}

interface MenuDescription {
  readonly parameters: ParameterShape;
  readonly schema: z.ZodType;
  readonly result: object;
  readonly sampledEvents?: number;
}

/** Describes what all menus share. */
function describeMenu(common: CommonDescription, { parameters, schema, result, sampledEvents }: MenuDescription) {
  const example = { startDate: null, endDate: null, results: [result], ...(sampledEvents && { sampledEvents }) };
  return {
    ...common,
    tag: 'events',
    requestParams: { query: querySchema(parameters, filtersOfEvents()) },
    responses: {
      200: {
        description: 'The names, properties or values.',
        content: { 'application/json': { schema, example } },
      },
    },
  };
}
