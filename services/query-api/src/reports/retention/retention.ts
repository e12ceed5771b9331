import { Turns } from '@sluice/shared/base/turns';
import type { Reservation } from '@sluice/shared/http/memory-budget';
import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { type CommonDescription, once, reserve, sendJson, timeSchema } from '../../http/http.ts';
import { documentFiltersOfEvents, fieldFilters, querySchema, withIdentity } from '../../records/records.ts';
import {
  type Query,
  type QueryRead,
  type ReadDependencies,
  type Row,
  registerRead,
  type Sql,
  type Tables,
} from '../../store/store.ts';
import { countWithOrganization, type FoundNothing, foundNothingSchemas } from '../events-with-organization.ts';
import { groupBySchema, groupsSchema, keyValue, nameOfKey, propertiesRead } from '../group-key.ts';
import { peopleSchema, sendPeople } from '../people.ts';
import { collectingSettings, readReport, reportRows } from '../report-runner.ts';
import { reportEnd, reportEndSchemas } from '../report-selection.ts';
import {
  parseRetentionPeopleRequest,
  parseRetentionRequest,
  type RetentionRequest,
  retentionFilterable,
  retentionParameters,
  retentionPeopleParameters,
} from './retention-parameters.ts';
import {
  RETENTION_GROUPS_MAX,
  type RetentionRow,
  type RetentionUserRow,
  retentionPeopleQuery,
  retentionQuery,
  WHOLE_COHORT,
} from './retention-query.ts';

/** Returns `GET /events/retention`: how many users come back, and when. */
export function retentionRead({ config, queryRunner }: ReadDependencies): QueryRead<RetentionRequest> {
  const settings = collectingSettings(config);
  return {
    path: '/events/retention',
    describe: describeRetention,
    repeats: true,
    parse: parseRetentionRequest,
    async respond(request, given, reply) {
      const context = await withIdentity(queryRunner, request.selection, given);
      const hiding = (tables: Tables, hidden: Sql | undefined) => retentionQuery(tables, request, hidden);
      const properties = propertiesRead(request.selection, request.groupBy ? [request.groupBy] : []);
      const query: Query = { kind: 'retention', hiding, settings, properties, ...context };
      const returns = new GroupedReturns(request, context.memory);
      const isWhole = await readReport(queryRunner, query, (row) => returns.add(row));
      const foundNothing =
        isWhole && returns.all.isEmpty
          ? await countWithOrganization(queryRunner, request.selection, { kind: 'retention', ...context })
          : {};
      return await sendJson(reply, retentionJson(request, isWhole ? returns : undefined, foundNothing));
    },
  };
}

/** The users whose first matching event in the range lies in one interval. */
export interface Cohort {
  /** When the interval begins, also when the range begins later. */
  readonly start: string;
  readonly size: number;
  /** For 0, 1, 2, … intervals later: how many of them returned. */
  readonly returned: readonly number[];
}

/** The response of `GET /events/retention`. */
export interface RetentionReport extends FoundNothing {
  readonly interval: string;
  readonly timeZone: string;
  readonly periods: number;
  /** One for each interval of the range; none when the query ran out of its time. */
  readonly cohorts: readonly Cohort[];
  /** What `groupBy` named; left out without it. */
  readonly groupBy?: readonly string[];
  /** The largest groups; left out without `groupBy`, and when the query ran out of its time. */
  readonly groups?: readonly { readonly group: readonly unknown[]; readonly cohorts: readonly Cohort[] }[];
  readonly startDate: string;
  readonly endDate: string;
  readonly complete: boolean;
  readonly exact: boolean;
}

/** A longer report is sent in chunks. */
const CHUNK_CHARACTERS = 64 * 1_024;

/** Collects the rows of one group of retention. */
export class Returns {
  readonly #periods: number;
  /** By cohort. */
  readonly #sizes: Float64Array;
  /** By cohort and period. */
  readonly #users: Float64Array;

  /** @throws {Problem} `overloaded` */
  constructor({ starts, periods }: RetentionRequest, memory: Reservation | undefined) {
    reserve(memory, starts.length * (periods + 1) * Float64Array.BYTES_PER_ELEMENT);
    this.#periods = periods;
    this.#sizes = new Float64Array(starts.length);
    this.#users = new Float64Array(starts.length * periods);
  }

  add(cohort: number, later: number, users: number): void {
    if (later === WHOLE_COHORT) this.#sizes[cohort] = users;
    else this.#users[cohort * this.#periods + later] = users;
  }

  get isEmpty(): boolean {
    return this.#sizes.every((size) => size === 0);
  }

  sizeOf(cohort: number): number {
    return this.#sizes[cohort] ?? 0;
  }

  of(cohort: number): readonly number[] {
    return [...this.#users.subarray(cohort * this.#periods, (cohort + 1) * this.#periods)];
  }
}

/** Collects the rows of retention. */
export class GroupedReturns {
  /** All groups together. */
  readonly all: Returns;
  /** By place, from 1 on. */
  readonly #groups = new Map<number, { readonly key: string; readonly returns: Returns }>();
  readonly #request: RetentionRequest;
  readonly #memory: Reservation | undefined;

  /** @throws {Problem} `overloaded` */
  constructor(request: RetentionRequest, memory: Reservation | undefined) {
    this.#request = request;
    this.#memory = memory;
    this.all = new Returns(request, memory);
  }

  /** The largest group first. */
  get groups(): readonly { readonly key: string; readonly returns: Returns }[] {
    return [...this.#groups].sort(([one], [other]) => one - other).map(([, group]) => group);
  }

  /** @throws {Problem} `overloaded` */
  add(row: Row): void {
    const [place, key, ...numbers] = row as unknown as RetentionRow;
    if (place === 0) {
      this.all.add(...numbers);
      return;
    }
    const group = this.#groups.get(place) ?? { key, returns: new Returns(this.#request, this.#memory) };
    this.#groups.set(place, group);
    group.returns.add(...numbers);
  }
}

/**
 * Returns the JSON of a {@link RetentionReport}, in chunks.
 *
 * @param returns `undefined` when the query ran out of its time. Then there are no cohorts: without the events of the whole
 *   range it is not known whose first event an event is.
 */
export async function* retentionJson(
  request: RetentionRequest,
  returns: GroupedReturns | undefined,
  foundNothing: FoundNothing,
): AsyncGenerator<string, void, undefined> {
  const { selection, interval, timeZone, periods, groupBy } = request;
  yield `${JSON.stringify({ interval, timeZone, periods }).slice(0, -1)},`;
  yield* cohortsJson(request, returns?.all);
  if (groupBy) yield `,"groupBy":${JSON.stringify([nameOfKey(groupBy)])}`;
  if (groupBy && returns) {
    yield ',"groups":[';
    for (const [index, group] of returns.groups.entries()) {
      const { key, returns: ofGroup } = group;
      yield `${index === 0 ? '' : ','}{"group":${JSON.stringify([keyValue(groupBy, key)])},`;
      yield* cohortsJson(request, ofGroup);
      yield '}';
    }
    yield ']';
  }
  yield `,${JSON.stringify({ ...reportEnd(selection, returns !== undefined), ...foundNothing }).slice(1)}`;
}

async function* cohortsJson(
  { starts }: RetentionRequest,
  returns: Returns | undefined,
): AsyncGenerator<string, void, undefined> {
  const turns = new Turns();
  let text = '"cohorts":[';
  for (const [index, start] of (returns ? starts : []).entries()) {
    const returned = returns?.of(index) ?? [];
    const cohort: Cohort = { start: new Date(start).toISOString(), size: returns?.sizeOf(index) ?? 0, returned };
    text += `${index === 0 ? '' : ','}${JSON.stringify(cohort)}`;
    if (text.length < CHUNK_CHARACTERS) continue;
    yield text;
    text = '';
    await turns.next();
  }
  yield `${text}]`;
}

/** Registers `GET /events/retention/people`: the users of a cohort, or those of them who came back in one interval. */
export function registerRetentionPeople(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const settings = collectingSettings(config);
  registerRead(app, {
    path: '/events/retention/people',
    describe: describeRetentionPeople,
    parse: ({ query, workspace }) => parseRetentionPeopleRequest(query, workspace),
    async respond(request, given, reply) {
      const context = await withIdentity(queryRunner, request.retention.selection, given);
      const hiding = (tables: Tables, hidden: Sql | undefined) => retentionPeopleQuery(tables, request, hidden);
      const rows = await reportRows(queryRunner, { kind: 'retention', hiding, settings, ...context });
      const recordOf = ([, startedMs]: RetentionUserRow) => ({ startedAt: new Date(startedMs).toISOString() });
      return await sendPeople(reply, request.page, request.retention.selection, rows, recordOf);
    },
  });
}

/** Returns the schema of the response of `GET /events/retention`. */
export const retentionSchema = once(() => {
  const cohort = z
    .object({
      start: timeSchema.meta({ description: 'When the local interval begins, also when the range begins later.' }),
      size: z.int().min(0).meta({ description: 'Users whose first matching event in the range is in the interval.' }),
      returned: z.array(z.int().min(0)).meta({
        description:
          'For 0, 1, 2, … intervals later: how many of them have a return event then, inside the range; in their own interval one that is not before their first event. Without `returnEvent` the first number is `size`.',
      }),
    })
    .meta({ id: 'Cohort' });

  return z
    .object({
      interval: z.string(),
      timeZone: z.string(),
      periods: z.int().meta({ description: 'The length of every `returned`.' }),
      cohorts: z.array(cohort).meta({
        description: 'One for each interval of the range, the oldest first; none when `complete` is `false`.',
      }),
      groupBy: groupBySchema().optional(),
      groups: groupsSchema(
        'RetentionGroup',
        { cohorts: z.array(cohort) },
        RETENTION_GROUPS_MAX,
        'by the sizes of their cohorts',
      ),
      ...reportEndSchemas(),
      ...foundNothingSchemas(),
    })
    .meta({ id: 'Retention' });
});

function retentionFilters() {
  return {
    ...documentFiltersOfEvents(),
    operators: fieldFilters(retentionFilterable.fields, {
      'event[in]': 'signed_up,invited',
      'returnEvent[ne]': 'opened',
    }),
  };
}

/** Describes `GET /events/retention`. */
function describeRetention(common: CommonDescription): OperationDescription {
  return {
    ...common,
    operationId: 'getRetention',
    summary: 'How many users or organizations come back, and when',
    description:
      'A user (or an organization) belongs to the cohort of the interval of its first event in the range that `event` names. Filters on `event` and `returnEvent` may have operators; all other filters, and the dates, hold for both. A query that runs out of its time is answered with `complete: false` and no cohorts: whose first event an event is takes all events of the range to know.',
    tag: 'events',
    requestParams: { query: querySchema(retentionParameters, retentionFilters(), ['startDate']) },
    responses: {
      200: {
        description: 'The cohorts.',
        content: {
          'application/json': {
            schema: retentionSchema(),
            example: {
              ...{ interval: 'week', timeZone: 'Europe/Berlin', periods: 3 },
              cohorts: [
                { start: '2026-03-01T23:00:00.000Z', size: 120, returned: [120, 64, 51] },
                { start: '2026-03-08T23:00:00.000Z', size: 98, returned: [98, 50, 0] },
              ],
              startDate: '2026-03-01T23:00:00.000Z',
              endDate: '2026-03-15T22:59:59.999Z',
              complete: true,
              exact: true,
            },
          },
        },
      },
    },
  };
}

/** Describes `GET /events/retention/people`. */
function describeRetentionPeople(common: CommonDescription): OperationDescription {
  const person = z
    .object({
      id: z.string().meta({ description: 'The identifier of the user or the organization.' }),
      startedAt: timeSchema.meta({ description: 'When the first event in the range was that makes the cohort.' }),
    })
    .meta({ id: 'RetentionPerson' });

  return {
    ...common,
    operationId: 'listRetentionPeople',
    summary: 'The users of a cohort, or those who came back, a page at a time',
    description:
      'The users behind a number of retention with the same parameters. Each page costs as much as retention. A query that runs out of its time is answered with `complete: false` and nobody.',
    tag: 'events',
    requestParams: { query: querySchema(retentionPeopleParameters, retentionFilters(), ['startDate', 'cohort']) },
    responses: {
      200: {
        description: 'A page of users.',
        content: {
          'application/json': {
            schema: peopleSchema(person).meta({ id: 'RetentionPeople' }),
            example: {
              limit: 100,
              results: [{ id: 'jane', startedAt: '2026-03-01T12:00:00.000Z' }],
              nextCursor: null,
              startDate: '2026-03-01T00:00:00.000Z',
              endDate: '2026-03-31T23:59:59.999Z',
              complete: true,
              exact: true,
            },
          },
        },
      },
    },
  };
}
