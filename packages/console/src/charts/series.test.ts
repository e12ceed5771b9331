import { REPORT_RANGES } from '@sluice/shared/testing/report-ranges';
import { expect, test } from 'vitest';
import type { EventSeries } from '../base/base.ts';
import { linesOf, readingOf, seriesParams } from './series.ts';

const NOW = new Date('2026-03-15T02:30:00Z');

/** In New York it is still the 14th. */
const CALENDAR = { timeZone: 'America/New_York', weekStart: 'sunday' } as const;

const paramsOf = (query: string) => Object.fromEntries(seriesParams(new URLSearchParams(query), CALENDAR, NOW));

test.each([
  ['', '2026-02-13T05:00:00.000Z', 'day'],
  ['range=1h', '2026-03-15T01:30:00.000Z', 'minute'],
  ['range=24h', '2026-03-14T02:30:00.000Z', 'hour'],
  ['range=7d', '2026-03-08T05:00:00.000Z', 'day'],
  ['range=12m', '2025-04-01T04:00:00.000Z', 'month'],
])('the range of "%s" begins with a whole day or month of the time zone', (query, startDate, interval) => {
  expect(paramsOf(query)).toEqual({ ...CALENDAR, startDate, interval });
});

test.each(REPORT_RANGES)(
  'of $parameters in $timeZone at $now the range is $expected, as that of a saved view',
  (given) => {
    const { timeZone, now, parameters, expected } = given;
    const query = seriesParams(new URLSearchParams(parameters), { ...CALENDAR, timeZone }, new Date(now));
    const [startDate, endDate, interval] = ['startDate', 'endDate', 'interval'].map(
      (name) => query.get(name) ?? undefined,
    );
    expect({ startDate, endDate, interval }).toEqual(expected);
  },
);

test('dates and an interval of the address count', () => {
  const given = { startDate: '2026-01-01T10:00:00Z', endDate: '2026-01-02T10:00:00Z', interval: 'week', event: 'e' };
  expect(paramsOf(`${new URLSearchParams(given)}&range=7d`)).toEqual({ ...given, ...CALENDAR });
});

test('a date alone is a day of the time zone', () => {
  const { startDate, endDate } = paramsOf('startDate=2026-01-01&endDate=2026-01-02');
  expect([startDate, endDate]).toEqual(['2026-01-01T05:00:00.000Z', '2026-01-03T04:59:59.999Z']);
});

test('groups have the names of their values, the others come last, each with the time before', () => {
  const series = [
    { group: ['pro', null], total: 3, values: [1, 2] },
    { group: [true, 7], total: 1, values: [1, 0] },
  ];
  const other = { total: 9, values: [4, 5] };
  const response = { measure: 'count', series, other, previous: { series, other } } as unknown as EventSeries;
  expect(linesOf(response).map(({ label, previous }) => [label, previous?.total])).toEqual([
    ['pro / (none)', 3],
    ['true / 7', 1],
    ['All others', 9],
  ]);
  const alone = { measure: 'users', series: [{ group: [], total: 3, values: [3] }], other: null };
  expect(linesOf(alone as unknown as EventSeries)).toMatchObject([{ label: 'Distinct users', total: 3 }]);
});

function line(label: string, value: number | null, before?: number) {
  const previous = before === undefined ? undefined : { total: before, values: [before] };
  return { label, total: value, values: [value], previous };
}

test('what is read of a time is its numbers, the largest first, those without one last, and none of a hidden line', () => {
  const lines = [line('a', 1), line('b', null), line('c', 30, 20), line('d', 4), line('e', -2)];
  expect(readingOf(lines, new Set([3]), 0)).toEqual([
    { index: 2, label: 'c', value: 30, before: 20 },
    { index: 0, label: 'a', value: 1, before: null },
    { index: 4, label: 'e', value: -2, before: null },
    { index: 1, label: 'b', value: null, before: null },
  ]);
});
