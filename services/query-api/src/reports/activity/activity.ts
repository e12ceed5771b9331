import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { type CommonDescription, once, timeSchema } from '../../http/http.ts';
import {
  ENTITY_KINDS,
  ENTITY_ROUTES,
  type EntityKind,
  type EventSelection,
  identifierParameter,
  isoTime,
  noSuchEntity,
  parseParameters,
  querySchema,
  readEntityTimes,
  refuseErrors,
  selectionParameters,
  whereSelected,
  withIdentity,
} from '../../records/records.ts';
import {
  DELETIONS_FRESH_MS,
  type Identity,
  type QueryContext,
  type QueryRunner,
  type ReadDependencies,
  RequestQueries,
  registerRead,
  type Sql,
  type Tables,
  TimeBudget,
} from '../../store/store.ts';
import { NAMES_SETTINGS } from '../menus/event-names.ts';
import { REPORT } from '../report-runner.ts';

/** Registers `GET /users/{foreignId}/activity`, and the same for organizations. */
export function registerActivities(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  for (const kind of ENTITY_KINDS) {
    registerRead(app, {
      path: `${ENTITY_ROUTES[kind].path}/:id/activity`,
      describe: (common) => describeActivity(kind, common),
      parse({ query, params: { id } }) {
        const { values, errors } = parseParameters(PARAMETERS[kind], { fields: {}, documents: [] }, query);
        refuseErrors(errors);
        return { id, ...values };
      },
      async respond({ id, ...request }, given, reply) {
        const context = await withIdentity(queryRunner, { identity: IDENTITY[kind], ...request }, given);
        const options = { nowMs: Date.now(), timeoutMs: config.QUERY_TIMEOUT_MS };
        const activity = await readActivity(queryRunner, { kind, id }, options, context);
        if (!activity) throw noSuchEntity(kind);
        return await reply.send(activity);
      },
    });
  }
}

const DAY_MS = 86_400_000;

/** How many UTC days an activity has, today included. */
export const ACTIVITY_DAYS = 30;

/** How many names of events an activity has at most. */
export const ACTIVITY_NAMES_MAX = 10;

/** What a user or an organization did in the last days, and when it was first and last seen. */
export interface Activity {
  /** All days, the oldest first. */
  readonly days: readonly { readonly date: string; readonly count: number }[];
  /** The names that most of the events of these days have. */
  readonly events: readonly { readonly event: string; readonly count: number }[];
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
}

/** An organization has no visitors of its own. */
const PARAMETERS = {
  user: { identity: selectionParameters.identity },
  organization: {},
} as const satisfies Record<EntityKind, object>;

/** What an activity sees that does not say it. */
const IDENTITY = { user: undefined, organization: 'raw' } as const satisfies Record<EntityKind, Identity | undefined>;

const FIELDS = { user: 'userId', organization: 'groupId' } as const satisfies Record<EntityKind, string>;

/** Reads an activity; `undefined` if there is no such user or organization. */
export async function readActivity(
  queryRunner: QueryRunner,
  { kind, id }: { readonly kind: EntityKind; readonly id: string },
  { nowMs, timeoutMs }: { readonly nowMs: number; readonly timeoutMs: number },
  context: QueryContext,
): Promise<Activity | undefined> {
  const queries = new RequestQueries(queryRunner, context, new TimeBudget(timeoutMs));
  const readAt = performance.now();
  const known = await readEntityTimes(queries, kind, id);
  if (!known) return undefined;
  const todayMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
  const startMs = todayMs - (ACTIVITY_DAYS - 1) * DAY_MS;
  const selection: EventSelection = {
    fields: [{ field: FIELDS[kind], condition: { operator: 'eq', value: id } }],
    properties: [],
    startMs,
    endMs: todayMs + DAY_MS - 1,
  };
  const options = { settings: NAMES_SETTINGS, ...REPORT };
  const rows = (await queries.all(
    'activity',
    { hiding: (tables, hidden) => activityQuery(tables, selection, hidden) },
    options,
  )) as [isDay: number, day: string, event: string, count: number][];
  // The report may have waited for its slot: the user may be deleted by now.
  const isFresh = performance.now() - readAt <= DELETIONS_FRESH_MS;
  const times = isFresh ? known : await readEntityTimes(queries, kind, id);
  if (!times) return undefined;
  const counts = new Map(rows.filter(([isDay]) => isDay).map(([, day, , count]) => [day, count]));
  const names = rows.filter(([isDay]) => !isDay).slice(0, ACTIVITY_NAMES_MAX);
  return {
    days: Array.from({ length: ACTIVITY_DAYS }, (_, index) => {
      const date = isoTime(startMs + index * DAY_MS).slice(0, 10);
      return { date, count: counts.get(date) ?? 0 };
    }),
    events: names.map(([, , event, count]) => ({ event, count })),
    firstSeenAt: isoTime(times.firstSeenMs),
    lastSeenAt: isoTime(times.lastSeenMs),
  };
}

/** Counts the events once by day and once by name, of which the most frequent are the first, in one reading. */
function activityQuery(tables: Tables, selection: EventSelection, hidden: Sql | undefined): Sql {
  const { sql, params } = whereSelected(tables, selection, hidden);
  return {
    sql: `SELECT grouping(event) AS is_day, toString(toDate(timestamp)) AS day, event, count() AS total
FROM ${tables.events}
${sql}
GROUP BY GROUPING SETS ((day), (event))
ORDER BY total DESC, event
LIMIT {rows_max:UInt64} BY is_day`,
    params: { ...params, rows_max: Math.max(ACTIVITY_DAYS, ACTIVITY_NAMES_MAX) },
  };
}

const activitySchema = once(() =>
  z
    .object({
      days: z
        .array(
          z.object({ date: z.string().meta({ format: 'date', description: 'A day in UTC.' }), count: z.int().min(0) }),
        )
        .length(ACTIVITY_DAYS)
        .meta({ description: 'The oldest first; the last one is today.' }),
      events: z
        .array(z.object({ event: z.string(), count: z.int().min(1) }))
        .max(ACTIVITY_NAMES_MAX)
        .meta({ description: 'The most frequent names of these days, in descending order.' }),
      firstSeenAt: timeSchema,
      lastSeenAt: timeSchema,
    })
    .meta({ id: 'Activity' }),
);

/** Describes `GET /users/{foreignId}/activity`, or the same for organizations. */
function describeActivity(kind: EntityKind, common: CommonDescription): OperationDescription {
  const { idName, schema: name, tag, noun } = ENTITY_ROUTES[kind];
  const lastDayMs = Date.UTC(2026, 2, 1);

  const example = {
    days: Array.from({ length: ACTIVITY_DAYS }, (_, index) => ({
      date: new Date(lastDayMs - (ACTIVITY_DAYS - 1 - index) * 86_400_000).toISOString().slice(0, 10),
      count: index % 3,
    })),
    events: [{ event: 'signed_in', count: 30 }],
    firstSeenAt: '2026-01-01T09:00:00.000Z',
    lastSeenAt: '2026-03-01T12:00:00.000Z',
  };
  return {
    ...common,
    codes: ['not_found', ...common.codes],
    operationId: `get${name}Activity`,
    summary: `What ${noun} did in the last ${ACTIVITY_DAYS} days`,
    tag,
    requestParams: { path: z.object({ [idName]: identifierParameter }), query: querySchema(PARAMETERS[kind], {}) },
    responses: {
      200: {
        description: 'Its events by day and by name.',
        content: { 'application/json': { schema: activitySchema(), example } },
      },
    },
  };
}
