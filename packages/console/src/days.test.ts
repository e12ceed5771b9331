import { expect, test } from 'vitest';
import { partialBuckets, withLocalDays } from './days.ts';

test.each([
  ['Asia/Tokyo', '2026-02-28T15:00:00.000Z', '2026-03-01T14:59:59.999Z'],
  ['America/New_York', '2026-03-01T05:00:00.000Z', '2026-03-02T04:59:59.999Z'],
  ['UTC', '2026-03-01T00:00:00.000Z', '2026-03-01T23:59:59.999Z'],
])('a date alone is the whole day in %s', (timeZone, startDate, endDate) => {
  const query = withLocalDays(new URLSearchParams('startDate=2026-03-01&endDate=2026-03-01&event=e'), timeZone);
  expect(Object.fromEntries(query)).toEqual({ startDate, endDate, event: 'e' });
});

test('a day without its midnight begins when the clocks first show it, and a day of 23 hours is whole', () => {
  const query = withLocalDays(new URLSearchParams('startDate=2026-03-08&endDate=2026-03-08'), 'America/Havana');
  expect([...query.values()]).toEqual(['2026-03-08T05:00:00.000Z', '2026-03-09T03:59:59.999Z']);
});

test.each(['2026-02-30', '2026-13-01', '2026-03-01T12:00', '2026-03-01T12:00:00Z', 'never', ''])(
  'what is no day, "%s", stays as it is',
  (startDate) => {
    expect(withLocalDays(new URLSearchParams({ startDate }), 'UTC').get('startDate')).toBe(startDate);
  },
);

const TOKYO_DAYS = ['2026-02-28T15:00:00.000Z', '2026-03-01T15:00:00.000Z'];

test.each([
  ['day', 'Asia/Tokyo', TOKYO_DAYS, '2026-02-28T15:00:00.000Z', '2026-03-02T14:59:59.999Z', []],
  ['day', 'Asia/Tokyo', TOKYO_DAYS, '2026-03-01T00:00:00.000Z', '2026-03-02T14:59:59.999Z', [0]],
  ['day', 'Asia/Tokyo', TOKYO_DAYS, '2026-02-28T15:00:00.000Z', '2026-03-01T23:59:59.999Z', [1]],
  ['hour', 'Asia/Tokyo', ['2026-03-01T10:00:00.000Z'], '2026-03-01T10:00:00.000Z', '2026-03-01T10:59:59.999Z', []],
  ['hour', 'Asia/Tokyo', ['2026-03-01T10:00:00.000Z'], '2026-03-01T10:00:00.000Z', '2026-03-01T10:59:00.000Z', [0]],
  // The first of two hours of a night in autumn.
  ['hour', 'Europe/Berlin', ['2026-10-25T00:00:00.000Z'], '2026-10-25T00:00:00.000Z', '2026-10-25T00:59:59.999Z', []],
  ['minute', 'UTC', ['2026-03-01T10:00:00.000Z'], '2026-03-01T10:00:30.000Z', '2026-03-01T10:00:59.999Z', [0]],
  ['week', 'UTC', ['2026-03-02T00:00:00.000Z'], '2026-03-02T00:00:00.000Z', '2026-03-08T23:59:59.999Z', []],
  ['week', 'UTC', ['2026-03-02T00:00:00.000Z'], '2026-03-02T00:00:00.000Z', '2026-03-05T23:59:59.999Z', [0]],
  // Weeks that begin on a Sunday.
  ['week', 'UTC', ['2026-03-01T00:00:00.000Z'], '2026-03-01T00:00:00.000Z', '2026-03-07T23:59:59.999Z', []],
  ['week', 'UTC', ['2026-03-01T00:00:00.000Z'], '2026-03-01T00:00:00.000Z', '2026-03-08T23:59:59.999Z', [0]],
  ['month', 'UTC', ['2026-03-01T00:00:00.000Z'], '2026-03-01T00:00:00.000Z', '2026-03-31T23:59:59.999Z', []],
  ['month', 'UTC', ['2026-03-01T00:00:00.000Z'], '2026-03-01T00:00:00.000Z', '2026-03-15T23:59:59.999Z', [0]],
  ['none', 'UTC', ['2026-03-01T10:00:00.000Z'], '2026-03-01T10:00:00.000Z', '2026-03-15T10:00:00.000Z', []],
])(
  'of each %s in %s, %j, those that are only partly in %s to %s are known',
  (interval, timeZone, buckets, startDate, endDate, indexes) => {
    const partial = partialBuckets({ buckets, interval, timeZone, startDate, endDate });
    expect([...partial]).toEqual(indexes.map((index) => buckets[index]));
  },
);
