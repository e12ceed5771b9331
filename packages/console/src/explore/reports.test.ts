import { expect, test } from 'vitest';
import { faultsOf, formOf, isReady, reportOf, reportParams, switchReport } from './reports.ts';

const NOW = new Date('2026-03-15T11:30:00Z');

const CALENDAR = { timeZone: 'Europe/Berlin', weekStart: 'sunday' } as const;

test('unknown choices of an address are the defaults, and every one is named', () => {
  const params = new URLSearchParams('report=toString&form=pie&range=1y&markers=a&markers=b');
  expect([reportOf(params), formOf(params.get('form'))]).toEqual(['series', 'line']);
  expect(faultsOf(params)).toEqual([
    'report must be one of series, funnel, retention, values.',
    'form must be one of line, bar, stacked, number.',
    'range must be one of 1h, 24h, 7d, 30d, 90d, 12m, 60m.',
    'markers is given more than once.',
  ]);
  expect(faultsOf(new URLSearchParams('report=funnel&form=bar&range=7d&markers=deploy'))).toEqual([]);
});

test.each([
  ['series', 'form=bar&markers=deploy&range=7d', { ...CALENDAR, interval: 'day' }],
  ['funnel', 'report=funnel&steps=a,b&range=7d', { steps: 'a,b' }],
  ['retention', 'report=retention&range=7d', { ...CALENDAR, interval: 'day' }],
  ['values', 'report=values&property=event&range=7d', { property: 'event' }],
] as const)('the parameters of query-api for a %s are without those of the console', (report, query, rest) => {
  const startDate = '2026-03-08T23:00:00.000Z';
  const params = reportParams(report, new URLSearchParams(query), CALENDAR, NOW);
  expect(Object.fromEntries(params)).toEqual({ startDate, ...rest });
});

test.each([
  ['7d', 'day'],
  ['30d', 'week'],
  ['90d', 'week'],
  ['12m', 'month'],
])('cohorts of the range %s are of a %s', (range, interval) => {
  const params = reportParams('retention', new URLSearchParams({ range }), CALENDAR, NOW);
  expect(params.get('interval')).toBe(interval);
});

test.each([
  [
    'event=a,b&groupBy=properties.plan,event&range=7d&form=bar',
    'funnel',
    'range=7d&steps=a\\,b&groupBy=properties.plan',
  ],
  [
    'report=funnel&steps=a\\,b,c&within=1d&groupBy=properties.x,y&userId=u',
    'series',
    'userId=u&event=a,b&groupBy=properties.x\\,y',
  ],
  ['event=a&groupBy=properties.plan&measure=users', 'values', 'event=a&property=properties.plan'],
  [
    'report=funnel&steps=a,b&by=organization&groupBy=organization.properties.plan&user.properties.country=CH',
    'retention',
    'user.properties.country=CH&event=a&by=organization&groupBy=organization.properties.plan',
  ],
  ['report=retention&by=organization&groupBy=properties.x,y', 'series', 'groupBy=properties.x\\,y'],
  ['report=values&property=event&startDate=2026-01-01', 'retention', 'startDate=2026-01-01'],
] as const)('%s as a %s shows the same events', (query, report, expected) => {
  const switched = switchReport(new URLSearchParams(query), report);
  expect(decodeURIComponent(switched.toString())).toBe(`report=${report}&${expected}`);
});

test('a funnel needs two steps, a list of values a property', () => {
  const ready = (report: 'funnel' | 'values' | 'series', query: string) => isReady(report, new URLSearchParams(query));
  expect([ready('funnel', 'steps=a'), ready('funnel', 'steps=a,'), ready('funnel', 'steps=a,b')]).toEqual([
    false,
    false,
    true,
  ]);
  expect([ready('values', ''), ready('values', 'property=event'), ready('series', '')]).toEqual([false, true, true]);
});
