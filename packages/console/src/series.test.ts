import { REPORT_RANGES } from '@sluice/shared/testing/report-ranges';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { EventSeries } from './api.ts';
import { linesOf, seriesParams } from './series.ts';

const NOW = new Date(2026, 2, 15, 12, 30);

const paramsOf = (query: string) => Object.fromEntries(seriesParams(new URLSearchParams(query), 'Europe/Berlin', NOW));

test.each([
  ['', new Date(2026, 1, 14), 'day'],
  ['range=1h', new Date(2026, 2, 15, 11, 30), 'minute'],
  ['range=24h', new Date(2026, 2, 14, 12, 30), 'hour'],
  ['range=7d', new Date(2026, 2, 9), 'day'],
  ['range=12m', new Date(2025, 3, 1), 'month'],
])('the range of "%s" begins with a whole day or month of the browser', (query, start, interval) => {
  expect(paramsOf(query)).toEqual({ timeZone: 'Europe/Berlin', startDate: start.toISOString(), interval });
});

test.each(REPORT_RANGES)(
  'of $parameters in $timeZone at $now the range is $expected, as that of a saved view',
  (given) => {
    const { timeZone, now, parameters, expected } = given;
    vi.stubEnv('TZ', timeZone);
    onTestFinished(() => void vi.unstubAllEnvs());
    const query = seriesParams(new URLSearchParams(parameters), timeZone, new Date(now));
    const [startDate, endDate, interval] = ['startDate', 'endDate', 'interval'].map(
      (name) => query.get(name) ?? undefined,
    );
    expect({ startDate, endDate, interval }).toEqual(expected);
  },
);

test('dates and an interval of the address count', () => {
  const given = { startDate: '2026-01-01T10:00:00Z', endDate: '2026-01-02T10:00:00Z', interval: 'week', event: 'e' };
  expect(paramsOf(`${new URLSearchParams(given)}&range=7d`)).toEqual({ ...given, timeZone: 'Europe/Berlin' });
});

test('a date alone is a day of the browser', () => {
  const { startDate, endDate } = paramsOf('startDate=2026-01-01&endDate=2026-01-02');
  expect([startDate, endDate]).toEqual([
    new Date(2026, 0, 1).toISOString(),
    new Date(new Date(2026, 0, 3).getTime() - 1).toISOString(),
  ]);
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
  expect(linesOf(alone as unknown as EventSeries)).toMatchObject([{ label: 'users', total: 3 }]);
});
