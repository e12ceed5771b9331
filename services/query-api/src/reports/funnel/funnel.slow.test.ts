import fc, { HOW_TO_REPEAT } from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type EventFilter, generateWorkspaces } from '../../testing/generated-workspaces.ts';
import { allPeople, inOrderOfIds } from '../../testing/people.ts';
import { eachIdentifier, type QueryService, startQuery, type TestEvent } from '../../testing/query-service.ts';
import { inOrder } from '../../testing/reference.ts';
import type { FunnelReport, FunnelStepCount } from './funnel.ts';

let query: QueryService;

const START_MS = Date.UTC(2026, 1, 27);
const RECEIVED_US = (START_MS + 86_400_000) * 1_000;
const EVENTS = ['a', 'b', 'c'];

/** Few persons, names and times, so that attempts overlap, and many events are at the same time. */
const anyEvent: fc.Arbitrary<TestEvent> = fc.record({
  uuid: fc.uuid(),
  timestampMs: fc.tuple(fc.nat(12), fc.constantFrom(0, 0, 0, 1)).map(([s, ms]) => START_MS + s * 1_000 + ms),
  receivedAtUs: fc.nat(9).map((step) => RECEIVED_US + step),
  event: fc.constantFrom(...EVENTS),
  type: fc.constantFrom('track', 'page'),
  ...eachIdentifier(fc.constant('')),
  userId: fc.constantFrom('', 'ada', 'bob', 'cem', 'dee'),
  groupId: fc.constantFrom('', 'acme', 'bolt'),
  instanceId: fc.constantFrom('', 'i', "j'"),
  properties: fc.constantFrom(
    '{}',
    '{"plan":"pro","n":1}',
    '{"plan":"free","n":2}',
    '{"plan":null,"n":3}',
    '{"plan":"1","nested":{"n":1.5}}',
    '{"plan":1,"nested":{"n":["x"]}}',
  ),
  context: fc.constant('{}'),
  traits: fc.constant('{}'),
});

const WORKSPACES = generateWorkspaces(
  8,
  fc.uniqueArray(anyEvent, { minLength: 5, maxLength: 150, selector: ({ uuid }) => uuid }),
  RECEIVED_US,
);

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  await WORKSPACES.store(query);
});
afterAll(() => query.stop());

const FILTERS: readonly EventFilter[] = [
  { parameter: 'properties.plan=pro', holds: ({ properties }) => JSON.parse(properties).plan === 'pro' },
  { parameter: 'properties.n[gte]=2', holds: ({ properties }) => JSON.parse(properties).n >= 2 },
  { parameter: 'properties.plan[ne]=free', holds: ({ properties }) => JSON.parse(properties).plan !== 'free' },
];

const COMMON_FILTERS: readonly EventFilter[] = [
  ...FILTERS,
  { parameter: 'type=track', holds: ({ type }) => type === 'track' },
  { parameter: 'userId[in]=ada,bob', holds: ({ userId }) => ['ada', 'bob'].includes(userId) },
  { parameter: 'event[ne]=b', holds: ({ event }) => event !== 'b' },
];

const GROUPINGS: Readonly<Record<string, (event: TestEvent) => unknown>> = {
  userId: ({ userId }) => userId || null,
  instanceId: ({ instanceId }) => instanceId || null,
  event: ({ event }) => event,
  'properties.plan': ({ properties }) => JSON.parse(properties).plan ?? null,
  'properties.nested.n': ({ properties }) => JSON.parse(properties).nested?.n ?? null,
};

interface Asked {
  readonly workspace: number;
  readonly steps: readonly { readonly event: string; readonly filters: readonly EventFilter[] }[];
  readonly filters: readonly EventFilter[];
  readonly by: 'user' | 'organization' | undefined;
  readonly withinS: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly groupBy: string | undefined;
}

const anyFunnel: fc.Arbitrary<Asked> = fc.record({
  workspace: fc.nat(WORKSPACES.names.length - 1),
  steps: fc.array(
    fc.record({
      event: fc.constantFrom(...EVENTS),
      filters: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.subarray([...FILTERS], { maxLength: 2 })),
    }),
    { minLength: 2, maxLength: 8, size: 'small' },
  ),
  filters: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.subarray([...COMMON_FILTERS], { maxLength: 2 })),
  by: fc.constantFrom('user', 'organization', undefined),
  withinS: fc.integer({ min: 1, max: 8 }),
  startMs: fc.nat(4).map((s) => START_MS + s * 1_000),
  endMs: fc.nat(5).map((s) => START_MS + (13 - s) * 1_000),
  groupBy: fc.option(fc.constantFrom(...Object.keys(GROUPINGS)), { nil: undefined }),
});

function urlOf({ steps, filters, by, withinS, startMs, endMs, groupBy }: Asked): string {
  return [
    `/events/funnel?steps=${steps.map(({ event }) => event).join(',')}`,
    `startDate=${new Date(startMs).toISOString()}`,
    `endDate=${new Date(endMs).toISOString()}`,
    `within=${withinS}s`,
    ...(by === undefined ? [] : [`by=${by}`]),
    ...(groupBy === undefined ? [] : [`groupBy=${groupBy}`]),
    ...filters.map(({ parameter }) => parameter),
    ...steps.flatMap((step, index) => step.filters.map(({ parameter }) => `step${index + 1}.${parameter}`)),
  ].join('&');
}

/** Returns the events of the attempt that counts, of each person with an event of the first step. */
function attemptsOf({ workspace, steps, filters, by, withinS, startMs, endMs }: Asked): (readonly TestEvent[])[] {
  const selected = inOrder(WORKSPACES.shown(workspace), { field: 'uuid', direction: 'ASC' })
    .toSorted((a, b) => a.timestampMs - b.timestampMs || a.receivedAtUs - b.receivedAtUs)
    .filter((event) => event.timestampMs >= startMs && event.timestampMs <= endMs + withinS * 1_000)
    .filter((event) => filters.every(({ holds }) => holds(event)));
  const persons = Map.groupBy(selected, ({ userId, groupId }) => (by === 'organization' ? groupId : userId));
  persons.delete('');
  const isOf = (event: TestEvent, step: number) =>
    steps[step]?.event === event.event &&
    (step > 0 || event.timestampMs <= endMs) &&
    steps[step].filters.every(({ holds }) => holds(event));
  return [...persons.values()].flatMap((events) => {
    const attempts = [...events.keys()].flatMap((first) => {
      if (!isOf(events[first] as TestEvent, 0)) return [];
      const attempt = [first];
      const endsAt = (events[first]?.timestampMs ?? 0) + withinS * 1_000;
      for (let step = 1; step < steps.length; step += 1) {
        const after = attempt.at(-1) as number;
        const found = events.findIndex((event, place) => place > after && isOf(event, step));
        if (found < 0 || (events[found] as TestEvent).timestampMs > endsAt) break;
        attempt.push(found);
      }
      return [attempt.map((place) => events[place] as TestEvent)];
    });
    if (attempts.length === 0) return [];
    const furthest = Math.max(...attempts.map(({ length }) => length));
    return attempts.filter(({ length }) => length === furthest).slice(0, 1);
  });
}

function countsOf({ steps }: Asked, attempts: readonly (readonly TestEvent[])[]): FunnelStepCount[] {
  return steps.map(({ event }, step) => {
    const completed = attempts.filter(({ length }) => length > step);
    const gaps = completed.map((attempt) => (attempt[step]?.timestampMs ?? 0) - (attempt[step - 1]?.timestampMs ?? 0));
    return { event, count: completed.length, medianSecondsFromPrevious: step === 0 ? null : medianSeconds(gaps) };
  });
}

function medianSeconds(gapsMs: readonly number[]): number | null {
  const sorted = gapsMs.toSorted((a, b) => a - b);
  const middle = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]];
  return sorted.length === 0 ? null : Math.round(((middle[0] ?? 0) + (middle[1] ?? 0)) / 2) / 1_000;
}

function groupsOf(asked: Asked, attempts: readonly (readonly TestEvent[])[]) {
  const keyOf = GROUPINGS[asked.groupBy ?? ''];
  if (!keyOf) return undefined;
  const byKey = Map.groupBy(attempts, ([first]) => JSON.stringify(keyOf(first as TestEvent)));
  return [...byKey]
    .toSorted(([a, one], [b, other]) => other.length - one.length || compareKeys(a, b))
    .slice(0, 10)
    .map(([key, members]) => ({ group: [JSON.parse(key)], steps: countsOf(asked, members) }));
}

/** Compares keys, given as JSON, by their text; `"1"` comes before `1`. */
function compareKeys(a: string, b: string): number {
  const textOf = (json: string) => Buffer.from(json.startsWith('"') ? JSON.parse(json) : json);
  return Buffer.compare(textOf(a), textOf(b)) || Buffer.compare(Buffer.from(a), Buffer.from(b));
}

async function funnel(asked: Asked): Promise<FunnelReport> {
  const { status, body } = await query.get(urlOf(asked), WORKSPACES.names[asked.workspace]);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body as unknown as FunnelReport;
}

test('a funnel equals a fold of the events that are shown', async () => {
  await fc.assert(
    fc.asyncProperty(anyFunnel, async (asked) => {
      const attempts = attemptsOf(asked);
      const groups = groupsOf(asked, attempts);
      expect(await funnel(asked), HOW_TO_REPEAT).toEqual({
        steps: countsOf(asked, attempts),
        groupBy: asked.groupBy === undefined ? [] : [asked.groupBy],
        ...(groups && { groups }),
        startDate: new Date(asked.startMs).toISOString(),
        endDate: new Date(asked.endMs).toISOString(),
        complete: true,
        exact: true,
      });
    }),
    { numRuns: 12, endOnFailure: true },
  );
});

/** A number of a funnel: of a step, counted from 0, and of a group, by its place. */
const anyNumber = fc.record({
  step: fc.nat(7),
  isDropped: fc.boolean(),
  group: fc.nat(3),
  limit: fc.constantFrom(1, 2, 100),
});

test('the people behind a number are those who are counted, page by page', async () => {
  await fc.assert(
    fc.asyncProperty(anyFunnel, anyNumber, async (asked, { isDropped, ...number }) => {
      const report = await funnel(asked);
      const step = number.step % asked.steps.length;
      const dropped = isDropped && step > 0;
      const group = report.groups?.[number.group];
      // Without a group there is nobody to ask for.
      if (asked.groupBy !== undefined && !group) return;
      const steps = (group ?? report).steps.map(({ count }) => count ?? Number.NaN);
      const url = [
        urlOf(asked).replace('/funnel?', '/funnel/people?'),
        `step=${step + 1}`,
        ...(dropped ? ['dropped=true'] : []),
        ...(group ? [`group=${encodeURIComponent(JSON.stringify(group.group[0]))}`] : []),
      ].join('&');
      const people = await allPeople(query, url, { workspace: WORKSPACES.names[asked.workspace], limit: number.limit });
      const count = dropped ? (steps[step - 1] ?? 0) - (steps[step] ?? 0) : steps[step];
      expect(people.length, HOW_TO_REPEAT).toBe(count);
      const keyOf = GROUPINGS[asked.groupBy ?? ''];
      const expected = attemptsOf(asked)
        .filter(({ length }) => (dropped ? length === step : length > step))
        .filter(([first]) => !group || JSON.stringify(keyOf?.(first as TestEvent)) === JSON.stringify(group.group[0]))
        .map((attempt) => ({
          id: (asked.by === 'organization' ? attempt[0]?.groupId : attempt[0]?.userId) ?? '',
          startedAt: timeOf(attempt[0]),
          reachedAt: timeOf(attempt[dropped ? step - 1 : step]),
        }));
      expect(people, HOW_TO_REPEAT).toEqual(inOrderOfIds(expected));
    }),
    { numRuns: 8, endOnFailure: true },
  );
});

function timeOf(event: TestEvent | undefined): string {
  return new Date(event?.timestampMs ?? Number.NaN).toISOString();
}
