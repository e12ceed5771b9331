import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { BUCKETS_MAX } from '../http/limits.ts';
import { bucketStarts, bucketStartsBefore, type CalendarUnit, timeZoneParameter } from './calendar.ts';

const UNITS = [
  ...['minute', 'hour', 'day', 'month'],
  ...['week from monday', 'week from saturday', 'week from sunday'],
] as readonly CalendarUnit[];

/** Where days and hours are odd: half-hour changes, skipped and repeated midnights, a day that never was. */
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'America/Havana',
  'Pacific/Apia',
  'America/St_Johns',
  'Africa/Casablanca',
];

const iso = (times: readonly number[]) => times.map((ms) => new Date(ms).toISOString().replace(':00.000Z', 'Z'));
const starts = (unit: CalendarUnit, zone: string, start: string, end: string) =>
  iso(bucketStarts(unit, zone, Date.parse(start), Date.parse(end)));

const formats = new Map<string, Intl.DateTimeFormat>();

/** What the clocks of a zone show, and their offset from UTC. */
function clockAt(zone: string, ms: number): { readonly date: string; readonly time: string; readonly offset: string } {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en-GB', {
      ...{ timeZone: zone, hourCycle: 'h23', timeZoneName: 'longOffset' },
      ...{ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' },
    });
  formats.set(zone, format);
  const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  return {
    date: `${parts['year']}-${parts['month']}-${parts['day']}`,
    time: `${parts['hour']}:${parts['minute']}`,
    offset: parts['timeZoneName'] ?? '',
  };
}

/** The interval that Intl says an instant is in, so that a later interval has a greater text. */
function intervalAt(unit: CalendarUnit, zone: string, ms: number): string {
  const { date, time, offset } = clockAt(zone, ms);
  switch (unit) {
    case 'minute':
      return `${date}T${time}${offset}`;
    case 'hour':
      return `${date}T${time.slice(0, 2)}${offset}`;
    case 'day':
      return date;
    case 'month':
      return date.slice(0, 7);
    case 'week from monday':
      return weekOf(date, 1);
    case 'week from saturday':
      return weekOf(date, 6);
    case 'week from sunday':
      return weekOf(date, 0);
  }
}

/** The first date of a date's week, which begins on a day from 0 (Sunday) to 6. */
function weekOf(date: string, firstDay: number): string {
  const day = new Date(date);
  return new Date(day.getTime() - ((day.getUTCDay() - firstDay + 7) % 7) * 86_400_000).toISOString().slice(0, 10);
}

const LENGTH_MS = { minute: 6e4, hour: 36e5, day: 864e5, week: 7 * 864e5, month: 30 * 864e5 } as const;
const lengthMs = (unit: CalendarUnit) => LENGTH_MS[unit.replace(/ .*/, '') as keyof typeof LENGTH_MS];

const cases = fc
  .record({
    unit: fc.constantFrom(...UNITS),
    zone: fc.constantFrom(...ZONES),
    startMs: fc.integer({ min: Date.UTC(1985, 0), max: Date.UTC(2035, 0) }),
    length: fc.double({ min: 0, max: 40, noNaN: true }),
  })
  .map(({ length, ...one }) => ({ ...one, endMs: Math.floor(one.startMs + length * lengthMs(one.unit)) }));

/** In St. John's the clocks once went back from 00:01 to 23:01: the date of the day before again. */
const repeatsDate = (zone: string, ms: number) =>
  zone === 'America/St_Johns' && clockAt(zone, ms).time.startsWith('23') && ms < Date.UTC(2012, 0);

test('buckets are the local intervals that Intl knows, and cover a range without gap', () => {
  fc.assert(
    fc.property(cases, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 }), (given, shares) => {
      const { unit, zone, startMs, endMs } = given;
      const found = bucketStarts(unit, zone, startMs, endMs);
      expect(found).toEqual(found.toSorted((a, b) => a - b));
      expect(found[0]).toBeLessThanOrEqual(startMs);
      expect(found[1] ?? Number.POSITIVE_INFINITY).toBeGreaterThan(startMs);
      expect(found.at(-1)).toBeLessThanOrEqual(endMs);
      // The millisecond before a bucket is in another interval.
      for (const start of found) {
        expect(intervalAt(unit, zone, start)).not.toBe(intervalAt(unit, zone, start - 1));
      }
      for (const share of shares) {
        const ms = Math.floor(startMs + share * (endMs - startMs));
        if (repeatsDate(zone, ms)) continue;
        const start = found.findLast((one) => one <= ms) ?? Number.NaN;
        expect(intervalAt(unit, zone, start)).toBe(intervalAt(unit, zone, ms));
      }
    }),
    { numRuns: 500 },
  );
});

test('a range that is counted back has as many intervals, and ends where it began', () => {
  fc.assert(
    fc.property(cases, fc.integer({ min: 0, max: 30 }), ({ unit, zone, startMs }, count) => {
      const [start = Number.NaN] = bucketStarts(unit, zone, startMs, startMs);
      const before = bucketStartsBefore(unit, zone, start, count);
      expect(before).toHaveLength(count);
      expect([...before, start]).toEqual(bucketStarts(unit, zone, before[0] ?? start, start));
    }),
    { numRuns: 300 },
  );
});

test('Berlin: days of 23 and 25 hours, and the repeated hour is two buckets', () => {
  expect(starts('day', 'Europe/Berlin', '2026-03-28T12:00Z', '2026-03-30T00:00Z')).toEqual([
    '2026-03-27T23:00Z',
    '2026-03-28T23:00Z',
    '2026-03-29T22:00Z',
  ]);
  expect(
    bucketStarts('hour', 'Europe/Berlin', Date.parse('2026-03-28T23:00Z'), Date.parse('2026-03-29T21:59Z')),
  ).toHaveLength(23);
  expect(
    bucketStarts('hour', 'Europe/Berlin', Date.parse('2026-10-24T22:00Z'), Date.parse('2026-10-25T22:59Z')),
  ).toHaveLength(25);
  expect(starts('month', 'Europe/Berlin', '2026-01-01', '2026-05-01')).toEqual([
    '2025-12-31T23:00Z',
    '2026-01-31T23:00Z',
    '2026-02-28T23:00Z',
    '2026-03-31T22:00Z',
    '2026-04-30T22:00Z',
  ]);
  expect(starts('week from monday', 'Europe/Berlin', '2026-03-29T12:00Z', '2026-03-30T12:00Z')).toEqual([
    '2026-03-22T23:00Z',
    '2026-03-29T22:00Z',
  ]);
  expect(starts('week from sunday', 'Europe/Berlin', '2026-03-28T12:00Z', '2026-03-29T12:00Z')).toEqual([
    '2026-03-21T23:00Z',
    '2026-03-28T23:00Z',
  ]);
});

test('Lord Howe: clocks change by half an hour, so one hour is short', () => {
  // 02:00+11:00 becomes 01:30+10:30.
  expect(starts('hour', 'Australia/Lord_Howe', '2026-04-04T14:00Z', '2026-04-04T16:00Z')).toEqual([
    '2026-04-04T14:00Z',
    '2026-04-04T15:00Z',
    '2026-04-04T15:30Z',
  ]);
  // 02:00+10:30 becomes 02:30+11:00.
  expect(starts('hour', 'Australia/Lord_Howe', '2026-10-03T14:30Z', '2026-10-03T16:00Z')).toEqual([
    '2026-10-03T14:30Z',
    '2026-10-03T15:30Z',
    '2026-10-03T16:00Z',
  ]);
});

test('Havana: a skipped midnight begins its day at one, and a repeated midnight begins its day once', () => {
  expect(starts('day', 'America/Havana', '2026-03-07T12:00Z', '2026-03-09T12:00Z')).toEqual([
    '2026-03-07T05:00Z',
    '2026-03-08T05:00Z',
    '2026-03-09T04:00Z',
  ]);
  expect(starts('day', 'America/Havana', '2026-10-31T12:00Z', '2026-11-02T12:00Z')).toEqual([
    '2026-10-31T04:00Z',
    '2026-11-01T04:00Z',
    '2026-11-02T05:00Z',
  ]);
});

test('Apia: a day that never was has no bucket', () => {
  expect(starts('day', 'Pacific/Apia', '2011-12-29T12:00Z', '2011-12-31T12:00Z')).toEqual([
    '2011-12-29T10:00Z',
    '2011-12-30T10:00Z',
    '2011-12-31T10:00Z',
  ]);
});

test('Kathmandu: local hours and days begin at a quarter past', () => {
  expect(starts('hour', 'Asia/Kathmandu', '2026-01-01T00:00Z', '2026-01-01T01:00Z')).toEqual([
    '2025-12-31T23:15Z',
    '2026-01-01T00:15Z',
  ]);
  expect(starts('day', 'Asia/Kathmandu', '2026-01-01T00:00Z', '2026-01-01T20:00Z')).toEqual([
    '2025-12-31T18:15Z',
    '2026-01-01T18:15Z',
  ]);
});

test('a list of too many buckets has one more than is allowed, however long the range', () => {
  const found = bucketStarts('minute', 'Europe/Berlin', Date.UTC(1900, 0), Date.UTC(2299, 11));
  expect(found).toHaveLength(BUCKETS_MAX + 1);
  expect(bucketStarts('month', 'Europe/Berlin', Date.UTC(1900, 0), Date.UTC(2299, 11, 31))).toHaveLength(4_800);
});

test.each([
  ['europe/berlin', 'Europe/Berlin'],
  ['utc', 'UTC'],
  ['Asia/Calcutta', 'Asia/Calcutta'],
  ['Asia/Kolkata', 'Asia/Kolkata'],
  ['US/Pacific', 'US/Pacific'],
  ['Etc/GMT+5', 'Etc/GMT+5'],
  ['+05:30', undefined],
  ['Z', undefined],
  ['Berlin', undefined],
  ['Europe/Berlin[u-ca=hebrew]', undefined],
  ['2026-01-01T00:00Z', undefined],
  ['', undefined],
])('the time zone %j is read as %j', (text, name) => {
  expect(timeZoneParameter.safeParse(text).data).toBe(name);
});
