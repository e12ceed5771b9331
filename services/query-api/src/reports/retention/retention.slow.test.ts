import fc, { HOW_TO_REPEAT } from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import {
  anyTimeOfClockChanges,
  CLOCK_CHANGES,
  type EventFilter,
  generateWorkspaces,
  HOUR_MS,
} from '../../testing/generated-workspaces.ts';
import { allPeople, inOrderOfIds } from '../../testing/people.ts';
import { eachIdentifier, type QueryService, startQuery, type TestEvent } from '../../testing/query-service.ts';
import type { Cohort, RetentionReport } from './retention.ts';

let query: QueryService;

const RECEIVED_US = (CLOCK_CHANGES.startMs + CLOCK_CHANGES.hours * HOUR_MS) * 1_000;

const anyEvent: fc.Arbitrary<TestEvent> = fc.record({
  uuid: fc.uuid(),
  timestampMs: anyTimeOfClockChanges,
  receivedAtUs: fc.nat(9).map((step) => RECEIVED_US + step),
  event: fc.constantFrom('signed_up', 'opened', 'paid'),
  type: fc.constantFrom('track', 'page'),
  ...eachIdentifier(fc.constant('')),
  userId: fc.constantFrom('', 'ada', 'bob', 'cem', 'dee', 'eve', 'fay', 'gus'),
  groupId: fc.constantFrom('', 'acme'),
  properties: fc.constantFrom('{}', '{"plan":"pro"}', '{"plan":"free"}'),
  context: fc.constant('{}'),
  traits: fc.constant('{}'),
});

const WORKSPACES = generateWorkspaces(
  6,
  fc.array(anyEvent, { minLength: 1, maxLength: 120, size: 'max' }),
  RECEIVED_US,
);

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  await WORKSPACES.store(query);
});
afterAll(() => query.stop());

const NAMES: readonly EventFilter[] = [
  { parameter: '=signed_up', holds: ({ event }) => event === 'signed_up' },
  { parameter: '[in]=signed_up,opened', holds: ({ event }) => event !== 'paid' },
  { parameter: '[ne]=', holds: () => true },
];

const FILTERS: readonly EventFilter[] = [
  { parameter: 'properties.plan=pro', holds: ({ properties }) => JSON.parse(properties).plan === 'pro' },
  { parameter: 'type=track', holds: ({ type }) => type === 'track' },
  { parameter: 'groupId[exists]=true', holds: ({ groupId }) => groupId !== '' },
];

const anyRetention = fc.record({
  workspace: fc.nat(WORKSPACES.names.length - 1),
  event: fc.option(fc.constantFrom(...NAMES), { nil: undefined }),
  returnEvent: fc.option(fc.constantFrom(...NAMES), { nil: undefined }),
  filters: fc.oneof(fc.constant<EventFilter[]>([]), fc.subarray([...FILTERS], { maxLength: 1 })),
  interval: fc.constantFrom('day', 'week', 'month', undefined),
  periods: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
  timeZone: fc.option(fc.constantFrom(...CLOCK_CHANGES.zones), { nil: undefined }),
  startMs: fc.nat(200).map((hours) => CLOCK_CHANGES.startMs + hours * HOUR_MS),
  endMs: fc.nat(200).map((hours) => CLOCK_CHANGES.startMs + (CLOCK_CHANGES.hours - hours) * HOUR_MS - 1),
});
type Asked = typeof anyRetention extends fc.Arbitrary<infer Value> ? Value : never;

function urlOf({ event, returnEvent, filters, interval, periods, timeZone, startMs, endMs }: Asked): string {
  return [
    `/events/retention?startDate=${new Date(startMs).toISOString()}`,
    `endDate=${new Date(endMs).toISOString()}`,
    ...(event ? [`event${event.parameter}`] : []),
    ...(returnEvent ? [`returnEvent${returnEvent.parameter}`] : []),
    ...(interval ? [`interval=${interval}`] : []),
    ...(periods ? [`periods=${periods}`] : []),
    ...(timeZone ? [`timeZone=${timeZone}`] : []),
    ...filters.map(({ parameter }) => parameter),
  ].join('&');
}

/** The first date of the local interval that an instant lies in. */
function firstDate(ms: number, { interval = 'day', timeZone = 'UTC' }: Asked): Temporal.PlainDate {
  const date = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone).toPlainDate();
  if (interval === 'day') return date;
  return interval === 'week' ? date.subtract({ days: date.dayOfWeek - 1 }) : date.with({ day: 1 });
}

/** A user of a cohort, and in which intervals the user returned, counted from the cohort's. */
interface Member {
  readonly id: string;
  readonly cohort: number;
  readonly startedAt: string;
  readonly periods: ReadonlySet<number>;
}

function usersOf(asked: Asked): { readonly users: readonly Member[]; readonly dates: readonly Temporal.PlainDate[] } {
  const { workspace, event, returnEvent = event, filters, interval = 'day' } = asked;
  const dates = [firstDate(asked.startMs, asked)];
  const last = firstDate(asked.endMs, asked).toString();
  while (String(dates.at(-1)) !== last) dates.push((dates.at(-1) as Temporal.PlainDate).add({ [`${interval}s`]: 1 }));
  const indexOf = ({ timestampMs }: TestEvent) => dates.findIndex((date) => date.equals(firstDate(timestampMs, asked)));
  const selected = WORKSPACES.shown(workspace)
    .filter(({ timestampMs }) => timestampMs >= asked.startMs && timestampMs <= asked.endMs)
    .filter((one) => one.userId !== '' && filters.every(({ holds }) => holds(one)));
  const users = [...Map.groupBy(selected, ({ userId }) => userId)].flatMap(([id, events]): Member[] => {
    const begun = events.filter((one) => event?.holds(one) ?? true);
    if (begun.length === 0) return [];
    const cohort = Math.min(...begun.map(indexOf));
    const startedMs = Math.min(...begun.map(({ timestampMs }) => timestampMs));
    const returns = events.filter((one) => one.timestampMs >= startedMs && (returnEvent?.holds(one) ?? true));
    const periods = new Set(returns.map((one) => indexOf(one) - cohort));
    return [{ id, cohort, startedAt: new Date(startedMs).toISOString(), periods }];
  });
  return { users, dates };
}

function cohortsOf(asked: Asked): Cohort[] {
  const { periods = 12, timeZone = 'UTC' } = asked;
  const { users, dates } = usersOf(asked);
  const cohorts = dates.map((date) => ({
    start: new Date(date.toZonedDateTime(timeZone).epochMilliseconds).toISOString(),
    size: 0,
    returned: new Array<number>(periods).fill(0),
  }));
  for (const user of users) {
    const cohort = cohorts[user.cohort] as { size: number; returned: number[] };
    cohort.size += 1;
    for (const later of user.periods) {
      if (later >= 0 && later < periods) cohort.returned[later] = (cohort.returned[later] ?? 0) + 1;
    }
  }
  return cohorts;
}

async function retention(url: string, workspace = 'a'): Promise<RetentionReport> {
  const { status, body } = await query.get(url, workspace);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body as unknown as RetentionReport;
}

test('retention equals a fold of the events that are shown, in every time zone', async () => {
  await fc.assert(
    fc.asyncProperty(anyRetention, async (asked) => {
      expect(await retention(urlOf(asked), WORKSPACES.names[asked.workspace]), HOW_TO_REPEAT).toEqual({
        interval: asked.interval ?? 'day',
        timeZone: asked.timeZone ?? 'UTC',
        periods: asked.periods ?? 12,
        cohorts: cohortsOf(asked),
        startDate: new Date(asked.startMs).toISOString(),
        endDate: new Date(asked.endMs).toISOString(),
        complete: true,
        exact: true,
      });
    }),
    { numRuns: 20, endOnFailure: true },
  );
});

test('the users behind a number are those who are counted, page by page', async () => {
  const anyNumber = fc.record({
    cohort: fc.nat(48),
    period: fc.nat(59),
    isWhole: fc.boolean(),
    limit: fc.constantFrom(1, 3, 100),
  });
  await fc.assert(
    fc.asyncProperty(anyRetention, anyNumber, async (asked, number) => {
      const workspace = WORKSPACES.names[asked.workspace];
      const { cohorts } = await retention(urlOf(asked), workspace);
      // Most cohorts are empty.
      const filled = cohorts.filter(({ size }) => size > 0);
      const cohort = filled[number.cohort % filled.length] ?? cohorts[number.cohort % cohorts.length];
      if (!cohort) throw new Error('there is no cohort');
      const later = [...cohort.returned.keys()].filter((period) => (cohort.returned[period] ?? 0) > 0);
      const ofReturns = later[number.period % later.length] ?? number.period % cohort.returned.length;
      const period = number.isWhole ? undefined : ofReturns;
      const behind = `cohort=${cohort.start}${period === undefined ? '' : `&period=${period}`}`;
      const url = `${urlOf(asked).replace('/retention?', '/retention/people?')}&${behind}`;
      const people = await allPeople(query, url, { workspace, limit: number.limit });
      expect(people.length, HOW_TO_REPEAT).toBe(period === undefined ? cohort.size : cohort.returned[period]);
      const expected = usersOf(asked)
        .users.filter(
          (user) => user.cohort === cohorts.indexOf(cohort) && (period === undefined || user.periods.has(period)),
        )
        .map(({ id, startedAt }) => ({ id, startedAt }));
      expect(people, HOW_TO_REPEAT).toEqual(inOrderOfIds(expected));
    }),
    { numRuns: 20, endOnFailure: true },
  );
});
