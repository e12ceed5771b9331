import { visitorOf } from '@sluice/shared/rows/deleted-person';
import fc from '@sluice/shared/testing/fast-check';
import { parseExactJson } from '@sluice/shared/text/json';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import {
  anyTimeOfClockChanges,
  CLOCK_CHANGES,
  type EventFilter,
  generateWorkspaces,
  HOUR_MS,
} from '../../testing/generated-workspaces.ts';
import { eachIdentifier, type QueryService, startQuery, type TestEvent } from '../../testing/query-service.ts';
import { bucketStarts, bucketStartsBefore, type CalendarInterval, calendarUnit } from '../calendar.ts';
import type { SeriesReport } from './series.ts';

let query: QueryService;

const RECEIVED_US = (CLOCK_CHANGES.startMs + CLOCK_CHANGES.hours * HOUR_MS) * 1_000;

/** Values whose types, digits and characters are easily lost. */
const PLANS = [
  ...['"pro"', '"free"', '1', '"1"', '1.5', 'true', 'null', '"null"', '""', '[1,"a"]', '{"b":{"c":"x"}}', '{"b.c":2}'],
  ...['1729384756102938475', '1729384756102938476', '12345678901234567890', '1e+25', '"\\ud800x"', '"a\\\\b/\\u0000ü"'],
];

const AMOUNTS = ['3', '-2', '0.25', '10.75', '0', '"7"', 'null', 'true', '[1]', '{"used":2}', '{"used":"x"}'];

const anyProperties = fc
  .record({
    plan: fc.option(fc.constantFrom(...PLANS, '"pro"', '"pro"', '"free"'), { nil: undefined }),
    amount: fc.option(fc.constantFrom(...AMOUNTS), { nil: undefined }),
    'plan.b': fc.option(fc.constantFrom('null', '5'), { nil: undefined, freq: 1 }),
    // ClickHouse's parser refuses the whole text for it.
    odd: fc.option(fc.constantFrom('"\\udfff"', '123456789012345678901234567890'), { nil: undefined, freq: 1 }),
  })
  .map((members) => {
    const written = Object.entries(members).filter(([, json]) => json !== undefined);
    return `{${written.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
  });

const anyEvent: fc.Arbitrary<TestEvent> = fc.record({
  uuid: fc.uuid(),
  timestampMs: anyTimeOfClockChanges,
  receivedAtUs: fc.nat(9).map((step) => RECEIVED_US + step),
  event: fc.constantFrom('signed_up', 'opened', 'öffnet', '"quoted\\"'),
  type: fc.constantFrom('track', 'page'),
  ...eachIdentifier(fc.constantFrom('', 'i')),
  userId: fc.constantFrom('', 'ada', 'bob', 'cem', 'dee', 'null'),
  groupId: fc.constantFrom('', 'acme', 'ajax'),
  properties: anyProperties,
  context: fc.constant('{}'),
  traits: fc.constant('{}'),
});

const WORKSPACES = generateWorkspaces(
  6,
  fc.array(anyEvent, { minLength: 1, maxLength: 150, size: 'max' }),
  RECEIVED_US,
);

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  await WORKSPACES.store(query);
});
afterAll(() => query.stop());

const FILTERS: readonly EventFilter[] = [
  { parameter: 'properties.plan=pro', holds: ({ properties }) => jsonOf(properties, 'plan') === '"pro"' },
  { parameter: 'type=track', holds: ({ type }) => type === 'track' },
  { parameter: 'event[in]=signed_up,opened', holds: ({ event }) => event === 'signed_up' || event === 'opened' },
  { parameter: 'groupId[exists]=true', holds: ({ groupId }) => groupId !== '' },
];

const KEYS = ['event', 'type', 'userId', 'groupId', 'instanceId', 'properties.plan', 'properties.plan.b.c'] as const;
const NUMERIC = ['sum', 'avg', 'min', 'max', 'p50', 'p90', 'p95', 'p99'] as const;
const MEASURES = [
  ...['count', 'users', 'organizations'],
  ...NUMERIC.flatMap((kind) => [`${kind}:properties.amount`, `${kind}:properties.amount.used`]),
];

const anySeries = fc.record({
  workspace: fc.nat(WORKSPACES.names.length - 1),
  interval: fc.constantFrom('hour', 'day', 'week', 'month', 'none', undefined),
  timeZone: fc.option(fc.constantFrom(...CLOCK_CHANGES.zones), { nil: undefined }),
  measure: fc.option(fc.oneof(fc.constantFrom('count', 'users'), fc.constantFrom(...MEASURES)), { nil: undefined }),
  groupBy: fc.oneof(fc.constant<(typeof KEYS)[number][]>([]), fc.subarray([...KEYS], { minLength: 1, maxLength: 2 })),
  groups: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
  filters: fc.oneof(fc.constant<EventFilter[]>([]), fc.subarray([...FILTERS], { maxLength: 2 })),
  compare: fc.boolean(),
  startMs: fc
    .tuple(fc.nat(700), fc.constantFrom(0, 0, 1))
    .map(([hours, ms]) => CLOCK_CHANGES.startMs + hours * HOUR_MS + ms),
  endMs: fc.nat(400).map((hours) => CLOCK_CHANGES.startMs + (CLOCK_CHANGES.hours - hours) * HOUR_MS - 1),
});
type Asked = typeof anySeries extends fc.Arbitrary<infer Value> ? Value : never;

function urlOf({ interval, timeZone, measure, groupBy, groups, filters, compare, startMs, endMs }: Asked): string {
  return [
    `/events/series?startDate=${new Date(startMs).toISOString()}`,
    `endDate=${new Date(endMs).toISOString()}`,
    ...(interval ? [`interval=${interval}`] : []),
    ...(timeZone ? [`timeZone=${timeZone}`] : []),
    ...(measure ? [`measure=${measure}`] : []),
    ...(groupBy.length > 0 ? [`groupBy=${groupBy.join(',')}`] : []),
    ...(groups && groupBy.length > 0 ? [`groups=${groups}`] : []),
    ...(compare ? ['compare=previous'] : []),
    ...filters.map(({ parameter }) => parameter),
  ].join('&');
}

/** The JSON of the value that a property has: the first that is not null, longer keys first. */
function jsonOf(properties: string, name: string): string | undefined {
  return find(parseExactJson(properties), name.split('.'));
}

function find(value: unknown, segments: readonly string[]): string | undefined {
  if (segments.length === 0) return value === null ? undefined : canonical(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value) || JSON.isRawJSON(value)) return undefined;
  for (let length = segments.length; length > 0; length -= 1) {
    const key = segments.slice(0, length).join('.');
    const found = Object.hasOwn(value, key)
      ? find((value as Record<string, unknown>)[key], segments.slice(length))
      : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Integers of 64 bits keep their digits; other numbers are doubles. */
function canonical(value: unknown): string {
  const json = JSON.stringify(value);
  return JSON.isRawJSON(value) && !/^(\d{1,19}|-\d{1,18})$/.test(json) ? JSON.stringify(Number(json)) : json;
}

/** The JSON of a key. */
function keyOf(event: TestEvent, name: string): string {
  if (name.startsWith('properties.')) return jsonOf(event.properties, name.slice('properties.'.length)) ?? 'null';
  return JSON.stringify(event[name as 'event'] || null);
}

/** A key as text, then its JSON: the order of equally large groups. */
function textsOf(json: string): readonly string[] {
  return [json.startsWith('"') ? (JSON.parse(json) as string).toWellFormed() : json, json];
}

function compareBytes(one: readonly string[], other: readonly string[]): number {
  for (const [index, text] of one.entries()) {
    const order = Buffer.compare(Buffer.from(text), Buffer.from(other[index] ?? ''));
    if (order !== 0) return order;
  }
  return 0;
}

/** Returns the person of an event where no visitor is linked. */
function personOf({ userId, anonymousId }: TestEvent): string | undefined {
  return userId || (anonymousId === '' ? undefined : visitorOf(anonymousId));
}

function foldOf(events: readonly TestEvent[], measure = 'count'): number | null {
  const [kind = '', path = ''] = measure.split(':');
  if (kind === 'count') return events.length;
  // Of visitors of nobody each is a person.
  if (kind === 'users') return new Set(events.map(personOf).filter((person) => person !== undefined)).size;
  if (kind === 'organizations') return new Set(events.map(({ groupId }) => groupId).filter((id) => id !== '')).size;
  const numbers = events
    .map(({ properties }) => jsonOf(properties, path.slice('properties.'.length)))
    .filter((json) => json !== undefined && /^[-\d]/.test(json))
    .map(Number)
    .sort((a, b) => a - b);
  const sum = numbers.reduce((total, number) => total + number, 0);
  if (kind === 'sum') return sum;
  if (numbers.length === 0) return null;
  if (kind === 'avg') return sum / numbers.length;
  if (kind === 'min') return numbers[0] ?? null;
  if (kind === 'max') return numbers.at(-1) ?? null;
  const position = (Number(kind.slice(1)) / 100) * (numbers.length - 1);
  const [below = 0, above = below] = numbers.slice(Math.floor(position));
  return below + (position % 1) * (above - below);
}

interface Range {
  readonly startMs: number;
  readonly endMs: number;
  readonly buckets: readonly number[];
}

function rangesOf({ interval = 'day', timeZone = 'UTC', startMs, endMs }: Asked): { range: Range; previous: Range } {
  const lengthMs = endMs + 1 - startMs;
  const before = { startMs: startMs - lengthMs, endMs: startMs - 1 };
  if (interval === 'none') {
    return { range: { startMs, endMs, buckets: [startMs] }, previous: { ...before, buckets: [before.startMs] } };
  }
  const starts = (from: number, to: number) =>
    bucketStarts(calendarUnit(interval as CalendarInterval), timeZone, from, to);
  const range = { startMs, endMs, buckets: starts(startMs, endMs) };
  const isWhole = range.buckets[0] === startMs && starts(endMs + 1, endMs + 1)[0] === endMs + 1;
  if (!isWhole) return { range, previous: { ...before, buckets: starts(before.startMs, before.endMs) } };
  const buckets = bucketStartsBefore(
    calendarUnit(interval as CalendarInterval),
    timeZone,
    startMs,
    range.buckets.length,
  );
  return { range, previous: { startMs: buckets[0] ?? 0, endMs: startMs - 1, buckets } };
}

function linesOf(asked: Asked, events: readonly TestEvent[], range: Range, keys?: readonly string[]) {
  const { measure, groupBy, groups = 10 } = asked;
  const selected = events.filter(({ timestampMs }) => timestampMs >= range.startMs && timestampMs <= range.endMs);
  const byKey = Map.groupBy(selected, (event) => JSON.stringify(groupBy.map((name) => keyOf(event, name))));
  const size = measure?.match(/^(avg|min|max|p\d+):/) ? undefined : measure;
  const largest = [...byKey]
    .map(([key, own]) => ({ key, size: foldOf(own, size) ?? 0, texts: (JSON.parse(key) as string[]).flatMap(textsOf) }))
    .sort((one, other) => other.size - one.size || compareBytes(one.texts, other.texts))
    .slice(0, groups)
    .map(({ key }) => key);
  const shownKeys = keys ?? (groupBy.length === 0 ? ['[]'] : largest);
  const line = (own: readonly TestEvent[]) => ({
    total: rounded(foldOf(own, measure)),
    values: range.buckets.map((start, index) => {
      const end = range.buckets[index + 1] ?? Number.POSITIVE_INFINITY;
      const inBucket = own.filter(({ timestampMs }) => timestampMs < end && (index === 0 || timestampMs >= start));
      return rounded(foldOf(inBucket, measure));
    }),
  });
  const others = [...byKey].filter(([key]) => !shownKeys.includes(key)).flatMap(([, own]) => own);
  return {
    keys: shownKeys,
    lines: {
      startDate: new Date(range.startMs).toISOString(),
      endDate: new Date(range.endMs).toISOString(),
      buckets: range.buckets.map((ms) => new Date(ms).toISOString()),
      series: shownKeys.map((key) => ({ group: JSON.parse(key) as string[], ...line(byKey.get(key) ?? []) })),
      other: others.length > 0 ? line(others) : null,
      total: rounded(foldOf(selected, measure)),
    },
  };
}

/** Sums of floats depend on their order. */
function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1e6) / 1e6 + 0;
}

function expectedOf(asked: Asked) {
  const { workspace, interval = 'day', timeZone = 'UTC', measure = 'count', groupBy, filters, compare } = asked;
  const events = WORKSPACES.shown(workspace).filter((event) => filters.every(({ holds }) => holds(event)));
  const { range, previous } = rangesOf(asked);
  const { keys, lines } = linesOf(asked, events, range);
  return {
    ...{ interval, timeZone, measure, groupBy, ...lines, complete: true, exact: true },
    ...(compare && { previous: linesOf(asked, events, previous, keys).lines }),
  };
}

/** The report with the JSON of keys in place of keys, and rounded numbers. */
function readable(text: string): unknown {
  const report = parseExactJson(text) as SeriesReport;
  const line = <Line extends SeriesReport['other']>(one: Line) =>
    one && { ...one, total: rounded(one.total), values: one.values.map(rounded) };
  const lines = <Lines extends NonNullable<SeriesReport['previous']>>(one: Lines) => ({
    ...one,
    series: one.series.map((series) => ({ ...line(series), group: series.group.map(canonical) })),
    other: line(one.other),
    total: rounded(one.total),
  });
  return { ...lines(report), ...(report.previous && { previous: lines(report.previous) }) };
}

test('every number equals a fold of the events that are shown, in every zone, measure and grouping', async () => {
  await fc.assert(
    fc.asyncProperty(anySeries, async (asked) => {
      const { status, text } = await query.get(urlOf(asked), WORKSPACES.names[asked.workspace]);
      expect([status, status === 200 ? readable(text) : text]).toEqual([200, expectedOf(asked)]);
    }),
    { numRuns: 25, endOnFailure: true },
  );
});
