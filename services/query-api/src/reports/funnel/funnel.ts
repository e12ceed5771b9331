import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { type CommonDescription, once, PROPERTY_FILTERS_MAX, STEPS_MAX, timeSchema } from '../../http/http.ts';
import {
  documentFiltersOfEvents,
  eventFilterable,
  fieldFilters,
  inPattern,
  openParameters,
  querySchema,
  SEGMENT_OPERATORS,
  SELECTION_DOCUMENTS,
  withIdentity,
} from '../../records/records.ts';
import {
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
import { collectingSettings, reportRows } from '../report-runner.ts';
import { reportEnd, reportEndSchemas } from '../report-selection.ts';
import {
  type FunnelRequest,
  funnelParameters,
  funnelPeopleParameters,
  parseFunnelPeopleRequest,
  parseFunnelRequest,
} from './funnel-parameters.ts';
import {
  FUNNEL_GROUPS_MAX,
  type FunnelPersonRow,
  type FunnelRow,
  funnelPeopleQuery,
  funnelQuery,
} from './funnel-query.ts';

/** Returns `GET /events/funnel`: how many get from one event to the next. */
export function funnelRead({ config, queryRunner }: ReadDependencies): QueryRead<FunnelRequest> {
  const settings = collectingSettings(config);
  return {
    path: '/events/funnel',
    describe: describeFunnel,
    parse: parseFunnelRequest,
    async respond(request, given, reply) {
      const context = await withIdentity(queryRunner, request.selection, given);
      const hiding = (tables: Tables, hidden: Sql | undefined) => funnelQuery(tables, request, hidden);
      const filters = [request.selection, ...request.steps].flatMap((one) => one.properties);
      const properties = propertiesRead({ properties: filters }, request.groupBy ? [request.groupBy] : []);
      const rows = await reportRows(queryRunner, { kind: 'funnel', hiding, settings, properties, ...context });
      const report = funnelReport(request, rows);
      if (report.steps[0]?.count !== 0) return await reply.send(report);
      const foundNothing = await countWithOrganization(queryRunner, request.selection, { kind: 'funnel', ...context });
      return await reply.send({ ...report, ...foundNothing });
    },
  };
}

/** How many persons completed a step. */
export interface FunnelStepCount {
  readonly event: string;
  /** `null`: not known, since the query ran out of its time. */
  readonly count: number | null;
  /** `null` for the first step as well, and for a step that nobody completed. */
  readonly medianSecondsFromPrevious: number | null;
}

export interface FunnelGroup {
  readonly group: readonly unknown[];
  readonly steps: readonly FunnelStepCount[];
}

/** The response of `GET /events/funnel`. */
export interface FunnelReport extends FoundNothing {
  readonly steps: readonly FunnelStepCount[];
  readonly groupBy: readonly string[];
  /** The largest groups; left out without `groupBy`, and when the query ran out of its time. */
  readonly groups?: readonly FunnelGroup[];
  readonly startDate: string;
  readonly endDate: string;
  readonly complete: boolean;
  readonly exact: boolean;
}

/**
 * Returns the report of a funnel.
 *
 * @param rows of its query; `undefined` when it ran out of its time: then no number is known
 */
export function funnelReport(request: FunnelRequest, rows: readonly Row[] | undefined): FunnelReport {
  const { groupBy, selection } = request;
  const parts = rows as readonly FunnelRow[] | undefined;
  const groups = parts?.filter(([whole]) => !whole);
  return {
    steps: stepCounts(
      request,
      parts?.find(([whole]) => whole),
      parts ? 0 : null,
    ),
    groupBy: groupBy ? [nameOfKey(groupBy)] : [],
    ...(groupBy &&
      groups && {
        groups: groups.map((row) => ({ group: [keyValue(groupBy, row[1])], steps: stepCounts(request, row, 0) })),
      }),
    ...reportEnd(selection, parts !== undefined),
  };
}

/** @param countWithoutRow the count of every step when there is no row: nobody began, or it is not known */
function stepCounts(
  { steps }: FunnelRequest,
  row: FunnelRow | undefined,
  countWithoutRow: 0 | null,
): FunnelStepCount[] {
  const [, , counts = [], mediansMs = []] = row ?? [];
  return steps.map(({ event }, index) => ({
    event,
    count: counts[index] ?? countWithoutRow,
    medianSecondsFromPrevious: inSeconds(mediansMs[index - 1]),
  }));
}

function inSeconds(ms: number | null | undefined): number | null {
  return ms === null || ms === undefined ? null : Math.round(ms) / 1_000;
}

/** Registers `GET /events/funnel/people`: who completed a step of a funnel, or dropped out before it. */
export function registerFunnelPeople(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const settings = collectingSettings(config);
  registerRead(app, {
    path: '/events/funnel/people',
    describe: describeFunnelPeople,
    parse: ({ query, workspace }) => parseFunnelPeopleRequest(query, workspace),
    async respond(request, given, reply) {
      const context = await withIdentity(queryRunner, request.funnel.selection, given);
      const hiding = (tables: Tables, hidden: Sql | undefined) => funnelPeopleQuery(tables, request, hidden);
      const rows = await reportRows(queryRunner, { kind: 'funnel', hiding, settings, ...context });
      const recordOf = ([, startedMs, reachedMs]: FunnelPersonRow) => ({
        startedAt: new Date(startedMs).toISOString(),
        reachedAt: new Date(reachedMs).toISOString(),
      });
      return await sendPeople(reply, request.page, request.funnel.selection, rows, recordOf);
    },
  });
}

/** Returns the schema of the response of `GET /events/funnel`. */
export const funnelSchema = once(() => {
  const step = z
    .object({
      event: z.string(),
      count: z.int().min(0).nullable().meta({
        description: 'How many completed this step and all before it; `null` when `complete` is `false`.',
      }),
      medianSecondsFromPrevious: z.number().min(0).nullable().meta({
        description:
          'The median time since the previous step, of those who completed this one, to the millisecond; `null` for the first step and for steps nobody reached.',
      }),
    })
    .meta({ id: 'FunnelStep' });

  return z
    .object({
      steps: z.array(step),
      groupBy: groupBySchema(),
      groups: groupsSchema('FunnelGroup', { steps: z.array(step) }, FUNNEL_GROUPS_MAX, 'by their first step'),
      ...reportEndSchemas(),
      ...foundNothingSchemas(),
    })
    .meta({ id: 'Funnel' });
});

function funnelFilters() {
  return {
    ...documentFiltersOfEvents(),
    stepFilters: openParameters(
      `^step[1-${STEPS_MAX}]\\.(${inPattern(SELECTION_DOCUMENTS.join('|'))})\\.`,
      `\`step<n>.properties.<name>[<operator>]=<value>\`: a filter on the events of one step alone, counted from 1. They count among the ${PROPERTY_FILTERS_MAX} filters on properties.`,
      { 'step2.properties.plan': 'pro', 'step2.properties.amount[gte]': '10' },
      PROPERTY_FILTERS_MAX,
    ),
    stepSegments: openParameters(
      `^step[1-${STEPS_MAX}]\\.segment(\\[(${SEGMENT_OPERATORS.join('|')})\\])?$`,
      '`step<n>.segment[<operator>]=<name>`: the events of one step alone that are of users or organizations in a segment.',
      { 'step2.segment': 'paying' },
    ),
    operators: fieldFilters(eventFilterable.fields, { 'userId[in]': 'jane,joe' }),
  };
}

/** Describes `GET /events/funnel`. */
function describeFunnel(common: CommonDescription): OperationDescription {
  return {
    ...common,
    operationId: 'getFunnel',
    summary: 'How many get from one event to the next',
    description:
      'A user (or an organization) completes step n when events of the steps 1 to n happened in this order, by `timestamp`, at equal times in the order of arrival, each strictly after the one before, within the window that begins with the first. Every event of the first step may begin an attempt; each step takes the earliest event that fits. The attempt that gets furthest counts, the earliest of equals. Filters hold for the events of all steps. The dates say when the first step is; the others may be after `endDate`, within the window. A query that runs out of its time is answered with `complete: false` and no counts.',
    tag: 'events',
    requestParams: { query: querySchema(funnelParameters, funnelFilters(), ['startDate', 'steps']) },
    responses: {
      200: {
        description: 'The counts of the steps.',
        content: {
          'application/json': {
            schema: funnelSchema(),
            example: {
              steps: [
                { event: 'signed_up', count: 120, medianSecondsFromPrevious: null },
                { event: 'invoice_paid', count: 45, medianSecondsFromPrevious: 86_400.5 },
              ],
              groupBy: [],
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

/** Describes `GET /events/funnel/people`. */
function describeFunnelPeople(common: CommonDescription): OperationDescription {
  const person = z
    .object({
      id: z.string().meta({ description: 'The identifier of the user or the organization.' }),
      startedAt: timeSchema.meta({ description: 'When the attempt that counts began: its first step.' }),
      reachedAt: timeSchema.meta({
        description: 'When it got to the step; of those who dropped out, to the step before.',
      }),
    })
    .meta({ id: 'FunnelPerson' });

  return {
    ...common,
    operationId: 'listFunnelPeople',
    summary: 'Who completed a step, or dropped out before it, a page at a time',
    description:
      'The users (or with `by=organization` the organizations) behind a number of the funnel of the same parameters: those who completed the step, or with `dropped=true` those who completed only the steps before it. Each page costs as much as the funnel. A query that runs out of its time is answered with `complete: false` and nobody.',
    tag: 'events',
    requestParams: { query: querySchema(funnelPeopleParameters, funnelFilters(), ['startDate', 'steps', 'step']) },
    responses: {
      200: {
        description: 'A page of users or organizations.',
        content: {
          'application/json': {
            schema: peopleSchema(person).meta({ id: 'FunnelPeople' }),
            example: {
              limit: 100,
              results: [{ id: 'jane', startedAt: '2026-03-01T12:00:00.000Z', reachedAt: '2026-03-02T08:00:00.000Z' }],
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
