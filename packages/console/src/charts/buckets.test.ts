import { expect, test } from 'vitest';
import { endsOf, partialBuckets, ticksOf, timeOfBuckets } from './buckets.ts';

const DAY_MS = 86_400_000;
const bucketsOf = (start: string, count: number, eachMs: number) =>
  Array.from({ length: count }, (_, index) => new Date(Date.parse(start) + index * eachMs).toISOString());

test('the time of a bucket is the part that is in the range', () => {
  const buckets = bucketsOf('2026-01-01T00:00:00.000Z', 3, DAY_MS);
  const range = { buckets, startDate: '2026-01-01T06:00:00.000Z', endDate: '2026-01-03T10:00:00.000Z' };
  expect([timeOfBuckets(range, 0), timeOfBuckets(range, 1), timeOfBuckets(range, 2)]).toEqual([
    { startDate: '2026-01-01T06:00:00.000Z', endDate: '2026-01-01T23:59:59.999Z' },
    { startDate: '2026-01-02T00:00:00.000Z', endDate: '2026-01-02T23:59:59.999Z' },
    { startDate: '2026-01-03T00:00:00.000Z', endDate: '2026-01-03T10:00:00.000Z' },
  ]);
  expect(timeOfBuckets(range, 0, 1)).toEqual({
    startDate: '2026-01-01T06:00:00.000Z',
    endDate: '2026-01-02T23:59:59.999Z',
  });
});

test('each bucket ends where the next begins, and the last one after its interval', () => {
  const weeks = bucketsOf('2026-01-05T00:00:00.000Z', 2, 7 * DAY_MS);
  expect(endsOf(weeks, 'week')).toEqual([Date.parse('2026-01-12'), Date.parse('2026-01-19')]);
  expect(endsOf(['2026-01-05T10:00:00.000Z'], 'hour')).toEqual([Date.parse('2026-01-05T11:00:00Z')]);
});

test('an axis names beginnings of weeks, all or every second one', () => {
  const weeks = bucketsOf('2026-01-05T00:00:00.000Z', 10, 7 * DAY_MS);
  expect(ticksOf(weeks, 'week', 'UTC', 10)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(ticksOf(weeks, 'week', 'UTC', 5)).toEqual([0, 2, 4, 6, 8]);
});

test('an axis names the hours that a clock shows, in the zone of the chart', () => {
  const hours = bucketsOf('2026-01-05T07:00:00.000Z', 24, 3_600_000);
  expect(ticksOf(hours, 'hour', 'UTC', 5)).toEqual([5, 11, 17, 23]);
  expect(ticksOf(hours, 'hour', 'Europe/Berlin', 5)).toEqual([4, 10, 16, 22]);
  expect(ticksOf(hours, 'hour', 'UTC', 1)).toEqual([17]);
  expect(ticksOf([], 'hour', 'UTC', 5)).toEqual([]);
});

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
