import { REPORT_RANGES } from '@sluice/shared/testing/report-ranges';
import { expect, test } from 'vitest';
import { viewQuery } from './view-query.ts';

test.each(REPORT_RANGES)('of $parameters in $timeZone at $now the range is $expected', (given) => {
  const { timeZone, now, parameters, expected } = given;
  const view = { report: 'series', parameters: { ...parameters, timeZone } } as const;
  const { query, errors } = viewQuery(view, new Date(now));
  const { startDate, endDate, interval } = query;
  expect(errors).toEqual([]);
  expect([startDate, endDate, interval].map((texts) => texts?.[0])).toEqual([
    expected.startDate,
    expected.endDate,
    expected.interval,
  ]);
  expect(query['timeZone']).toEqual([timeZone]);
});

test('what only the console knows is not sent, and a time zone and a week only to reports that have them', () => {
  const own = { range: '7d', form: 'bar', markers: 'deployed' };
  const parameters = { ...own, timeZone: 'Europe/Berlin', weekStart: 'sunday', steps: 'a,b' };
  const namesOf = (report: 'funnel' | 'retention') =>
    Object.keys(viewQuery({ report, parameters }, new Date()).query).sort();
  expect(namesOf('funnel')).toEqual(['startDate', 'steps']);
  expect(namesOf('retention')).toEqual(['interval', 'startDate', 'steps', 'timeZone', 'weekStart']);
});

test.each([
  ['7d', 'day'],
  ['30d', 'week'],
  ['90d', 'week'],
  ['12m', 'month'],
])('cohorts of the range %s are of a %s', (range, interval) => {
  const { query } = viewQuery({ report: 'retention', parameters: { range } }, new Date('2026-03-15T11:30:00Z'));
  expect(query['interval']).toEqual([interval]);
});

test('a name like that of an inherited member is a name like any other', () => {
  const parameters = JSON.parse('{"__proto__": "x", "constructor": "y"}') as Record<string, string>;
  const { query } = viewQuery({ report: 'series', parameters }, new Date());
  expect(Object.keys(query)).toEqual(expect.arrayContaining(['__proto__', 'constructor']));
});
