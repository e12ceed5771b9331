import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import fc from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { EventSelection } from '../records/events/event-selection.ts';
import { querySettings } from '../store/query-settings.ts';
import type { Sql } from '../store/sql.ts';
import { LOCAL_TABLES, type Tables } from '../store/tables.ts';
import { MeasuredRunner } from '../testing/measured-runner.ts';
import { anEvent, type QueryService, startQuery, type TestEvent } from '../testing/query-service.ts';
import { DAYS, HOURS, hourCountsQuery, isCountedByHour } from './hour-counts.ts';

const HOUR_MS = 3_600_000;
const FIRST_MS = Date.UTC(2026, 0, 30);
const UNITS = [DAYS, HOURS];
const keysOf = (start: string) => ({ type: 'type', event: 'event', day: `substring(toString(${start}), 1, 10)` });

const FAR = ['1900-01-01T00:30:00Z', '1950-06-01T12:59:59.999Z', '1969-12-31T23:30:00Z', '2110-01-01T01:00:00Z'];

/** The user whose events are hidden. */
const GONE = 'gone';
const HIDDEN: Sql = { sql: 'user_id = {gone:String}', params: { gone: GONE } };

let service: QueryService;
let events: TestEvent[];

beforeAll(async () => {
  service = await startQuery(inject('clickhouseUrl'));
  events = Array.from({ length: 600 }, (_, index) =>
    anEvent({
      // Also at the first and the last millisecond of an hour.
      timestampMs: FIRST_MS + ((index * 977) % 96) * (HOUR_MS / 2) + (index % 3) - 1,
      type: index % 5 === 0 ? 'page' : 'track',
      event: `e${index % 4}`,
      userId: index % 7 === 0 ? GONE : `u${index % 9}`,
    }),
  );
  // What has 32 bits begins in 1970 and ends in 2106.
  events.push(...FAR.map((time) => anEvent({ timestampMs: Date.parse(time), event: 'e1' })));
  for (let at = 0; at < events.length; at += 100) await service.store('a', events.slice(at, at + 100));
  await service.store('b', [anEvent({ timestampMs: FIRST_MS })]);
});
afterAll(() => service.stop());

/** Runs a statement so that it fails unless the projection answers all of it, or so that none answers any of it. */
async function rows({ sql, params }: Sql, projection: 'force' | 'none'): Promise<unknown[][]> {
  const result = await service.clickHouse.query({
    query: sql,
    query_params: { ...params, workspace: 'a' },
    format: 'JSONCompact',
    clickhouse_settings: {
      ...querySettings(service.config),
      ...(projection === 'force' ? { force_optimize_projection: 1 } : { optimize_use_projections: 0 }),
    },
  });
  return (await result.json<unknown[]>()).data.toSorted((a, b) => (String(a) < String(b) ? -1 : 1));
}

function selectionOf(given: Partial<EventSelection>): EventSelection {
  return { fields: [], properties: [], startMs: undefined, endMs: undefined, ...given };
}

/** The rows that the query has to return, folded from the events. */
function folded(stored: readonly TestEvent[], { startMs, endMs, fields }: EventSelection): unknown[][] {
  const counts = new Map<string, number>();
  for (const { timestampMs, type, event } of stored) {
    if (timestampMs < (startMs ?? -Infinity) || timestampMs > (endMs ?? Infinity)) continue;
    if (!fields.every(({ field, condition }) => ({ type, event })[field as 'event'] === condition.value)) continue;
    const key = [type, event, new Date(timestampMs).toISOString().slice(0, 10)].join();
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts]
    .map(([key, count]) => [...key.split(','), count])
    .toSorted((a, b) => (String(a) < String(b) ? -1 : 1));
}

const near = fc.integer({ min: -2, max: 50 }).map((hours) => FIRST_MS + hours * HOUR_MS);
const far = fc.constantFrom(...FAR.map((time) => Date.parse(time)), Date.UTC(2086, 6, 7), Date.UTC(2290, 0));
const momentMs = fc
  .tuple(fc.oneof({ weight: 3, arbitrary: near }, far), fc.constantFrom(-1, 0, 1, 1_234_567))
  .map(([base, ms]) => base + ms);

test('counts of any range, with and without hidden events, equal a fold of the events', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.option(momentMs, { nil: undefined }),
      fc.option(momentMs, { nil: undefined }),
      fc.boolean(),
      fc.boolean(),
      fc.boolean(),
      async (startMs, endMs, hides, filters, byDay) => {
        const selection = selectionOf({
          startMs,
          endMs,
          fields: filters ? [{ field: 'event', condition: { operator: 'eq', value: 'e1' } }] : [],
        });
        if (startMs !== undefined && endMs !== undefined && startMs > endMs) return;
        const shown = hides ? events.filter(({ userId }) => userId !== GONE) : events;
        const query = hourCountsQuery(
          LOCAL_TABLES,
          selection,
          keysOf,
          hides ? HIDDEN : undefined,
          byDay ? UNITS : [HOURS],
        );
        expect(await rows(query, 'none')).toEqual(folded(shown, selection));
        const counted = await service.clickHouse.query({
          query: query.sql,
          query_params: { ...query.params, workspace: 'a' },
          format: 'JSONCompact',
          clickhouse_settings: querySettings(service.config),
        });
        const { data } = await counted.json<unknown[]>();
        expect(data.toSorted((a, b) => (String(a) < String(b) ? -1 : 1))).toEqual(folded(shown, selection));
      },
    ),
    { numRuns: 12, seed: 14 },
  );
});

test.each([
  ['hours', [HOURS]],
  ['days', UNITS],
] as const)(
  'the projection answers whole %s: it stays equal to the rows through repeats, merges and erasure',
  async (_, units) => {
    const query = hourCountsQuery(LOCAL_TABLES, selectionOf({}), keysOf, undefined, units);
    const expectEqual = async () => {
      const counted = await rows(query, 'force');
      expect(counted).toEqual(await rows(query, 'none'));
      return counted;
    };
    expect(await expectEqual()).toEqual(folded(events, selectionOf({})));
    // The writer stores no event twice. Were one stored twice, a merge would remove it from both.
    await service.store('a', events.slice(0, 100));
    await expectEqual();
    await mergeParts(service.clickHouse, 'events');
    expect(await expectEqual()).toEqual(folded(events, selectionOf({})));
    await service.clickHouse.command({
      query: 'ALTER TABLE events DELETE WHERE user_id = {gone:String}',
      query_params: { gone: GONE },
      clickhouse_settings: { mutations_sync: '2' },
    });
    events = events.filter(({ userId }) => userId !== GONE);
    expect(await expectEqual()).toEqual(folded(events, selectionOf({})));
  },
);

test.each([
  ['hours', [HOURS], 48],
  ['days, and hours at the edges', UNITS, 1 + 24],
] as const)('a count by name reads rows for %s, not for events', async (_, units, rowsExpected) => {
  const runner = new MeasuredRunner(service.clickHouse, service.config);
  const workspace = units.length === 1 ? 'c' : 'd';
  const startMs = FIRST_MS + 12 * HOUR_MS;
  const selection = selectionOf({ startMs, endMs: startMs + 48 * HOUR_MS - 1 });
  const statement = (tables: Tables) => hourCountsQuery(tables, selection, keysOf, undefined, units);
  const many = Array.from({ length: 48 * 200 }, (_, index) =>
    anEvent({ timestampMs: startMs + (index % 48) * HOUR_MS + index }),
  );
  await service.store(workspace, many);
  await mergeParts(service.clickHouse, 'events');
  const read = await runner.measure(() => runner.all({ statement, kind: 'events_count', workspace }));
  // A granule may hold rows of other workspaces, but all of them are few.
  expect(read.rows).toBeGreaterThanOrEqual(rowsExpected);
  expect(read.rows).toBeLessThan(many.length / 8);
});

test('only filters on type and name are counted by projections', () => {
  const eq = { operator: 'eq', value: 'x' } as const;
  expect(isCountedByHour(selectionOf({ fields: [{ field: 'event', condition: eq }] }))).toBe(true);
  expect(isCountedByHour(selectionOf({ fields: [{ field: 'userId', condition: eq }] }))).toBe(false);
  const property = { document: 'properties', name: 'a', condition: eq } as const;
  expect(isCountedByHour(selectionOf({ properties: [property] }))).toBe(false);
});
