import type { OperationDescription } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { type CommonDescription, once, timeSchema } from '../../http/http.ts';
import { parseParameters, querySchema, refuseErrors } from '../../records/records.ts';
import type { QueryRead, ReadDependencies } from '../../store/store.ts';
import { timeZoneParameter } from '../calendar.ts';
import { CHANGES_MAX, OVERVIEW_DAYS, TOP_EVENTS_MAX, UNUSUAL_DEVIATIONS, WEEKS_MIN } from './overview-query.ts';
import { OverviewReader, SAMPLED_OF_DAY } from './overview-reader.ts';

const overviewParameters = { timeZone: timeZoneParameter };

/** Returns `GET /overview`: the numbers of yesterday beside those of a week before, and what is unusual about them. */
export function overviewRead({ config, queryRunner }: ReadDependencies): QueryRead<string> {
  const reader = new OverviewReader(queryRunner, config);
  return {
    path: '/overview',
    describe: describeOverview,
    repeats: true,
    parse(query) {
      const { values, errors } = parseParameters(overviewParameters, { fields: {}, documents: [] }, query);
      refuseErrors(errors);
      return values.timeZone ?? 'UTC';
    },
    respond: async (timeZone, context, reply) => await reply.send(await reader.read(timeZone, Date.now(), context)),
  };
}

const overviewSchema = once(() => {
  const number = new Intl.NumberFormat('en');
  const count = z.int().min(0);
  const values = z.array(count).length(OVERVIEW_DAYS);
  const expected = z.object({ from: count, to: count }).meta({
    description: `The counts of the same weekday in the weeks before, from the lowest to the highest, and ${UNUSUAL_DEVIATIONS} standard deviations of chance.`,
  });
  const figure = z
    .object({
      measure: z.enum(['count', 'users', 'organizations']).meta({ description: 'As `GET /events/series` names it.' }),
      days: z.int().min(1).meta({ description: 'The number is of so many days, which end with yesterday.' }),
      value: count.nullable(),
      previous: count.nullable().meta({ description: 'The same a week before.' }),
      values: z.array(count.nullable()).meta({ description: 'One for each day, or each week, the oldest first.' }),
      today: count.nullable().meta({ description: 'Of today until now; `null` of several days.' }),
    })
    .meta({
      id: 'OverviewFigure',
      description: 'Numbers are `null` when they were not computed in time.',
    });
  const change = z
    .object({
      event: z.string(),
      property: z.string().nullable().meta({
        description: 'The name of a property of the event; `null` where the number of events is unusual.',
      }),
      value: z.unknown().meta({ description: 'The value of the property, of its JSON type.' }),
      count: count.meta({ description: 'Yesterday; of a value, in the events that were looked at.' }),
      expected,
      deviation: z.number().meta({
        description: 'How far the count lies outside of the counts before, in standard deviations.',
      }),
      values,
      of: values.nullable().meta({
        description:
          'Of a value, the events of this name that were looked at, of each day: its share is what is compared.',
      }),
    })
    .meta({ id: 'OverviewChange' });
  const top = z
    .object({ event: z.string(), count, expected: expected.nullable(), values })
    .meta({ id: 'OverviewEvent' });
  return z
    .object({
      timeZone: z.string(),
      startDate: timeSchema,
      endDate: timeSchema.meta({ description: 'The end of yesterday.' }),
      days: z.array(timeSchema).length(OVERVIEW_DAYS).meta({
        description: 'When each day begins, the oldest first: yesterday, and the four weeks before it.',
      }),
      weeks: z
        .int()
        .min(0)
        .max(4)
        .meta({
          description: `With how many weeks before yesterday it can be compared: those since the first whole day with events. With fewer than ${WEEKS_MIN} there are no \`changes\`.`,
        }),
      figures: z.array(figure).length(4),
      changes: z
        .array(change)
        .max(2 * CHANGES_MAX)
        .meta({
          description: `The most unusual first: up to ${CHANGES_MAX} names of events, and up to ${CHANGES_MAX} values of properties.`,
        }),
      topEvents: z.array(top).max(TOP_EVENTS_MAX).meta({ description: 'The most frequent names of yesterday.' }),
      sampledShare: z
        .number()
        .min(0)
        .max(1)
        .nullable()
        .meta({
          description: `The part of each day whose events were looked at for values of properties: all of it where no day has more than ${number.format(SAMPLED_OF_DAY)} events. \`null\` when that was too much.`,
        }),
      complete: z.boolean().meta({ description: 'Whether everything was computed within its time.' }),
      exact: z.boolean().meta({ description: 'Whether no distinct count is an estimate.' }),
    })
    .meta({ id: 'Overview' });
});

function describeOverview(common: CommonDescription): OperationDescription {
  const dayMs = 86_400_000;
  const startMs = Date.UTC(2026, 1, 1);
  const values = (last: number, usual: number) =>
    Array.from({ length: OVERVIEW_DAYS }, (_, day) => (day === OVERVIEW_DAYS - 1 ? last : usual));
  const figure = (measure: string, value: number, previous: number) => ({
    ...{ measure, days: 1, value, previous },
    ...{ values: values(value, previous), today: 12 },
  });
  const signedUp = { event: 'signed_up', count: 118, expected: { from: 304, to: 431 }, values: values(118, 365) };
  const example = {
    timeZone: 'UTC',
    startDate: new Date(startMs).toISOString(),
    endDate: new Date(startMs + OVERVIEW_DAYS * dayMs - 1).toISOString(),
    days: values(0, 0).map((_, day) => new Date(startMs + day * dayMs).toISOString()),
    weeks: 4,
    figures: [
      figure('count', 1180, 1365),
      figure('users', 210, 240),
      figure('organizations', 31, 30),
      { measure: 'users', days: 7, value: 820, previous: 790, values: [760, 775, 790, 820], today: null },
    ],
    changes: [{ ...signedUp, property: null, value: null, deviation: 16.5, of: null }],
    topEvents: [signedUp],
    sampledShare: 1,
    complete: true,
    exact: true,
  };
  return {
    ...common,
    operationId: 'getOverview',
    summary: 'The numbers of yesterday, and what was unusual',
    description: `Whole days of a time zone: events, users and organizations of yesterday, and users of the seven days that end with it, each beside the same a week before. Names of events and values of their properties are compared with the same weekday of up to four weeks. Events are counted by hour; of their properties about ${new Intl.NumberFormat('en').format(SAMPLED_OF_DAY)} events of each day are looked at. The console's home page shows it.`,
    tag: 'events',
    requestParams: { query: querySchema(overviewParameters, {}) },
    responses: {
      200: { description: 'The overview.', content: { 'application/json': { schema: overviewSchema(), example } } },
    },
  };
}
