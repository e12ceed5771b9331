import { expect, test } from 'vitest';
import { labelOfTime, withLocalDays } from './dates.ts';

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

test('a time that ends now is called by its length, any other by its days', () => {
  const now = new Date('2026-03-15T11:30:20Z');
  const [zone, end] = ['Europe/Berlin', '2026-03-15T11:30:00.000Z'];
  const labelOf = (start: string, to = end) => labelOfTime(start, to, zone, now);
  expect(labelOf('2026-02-13T23:00:00.000Z')).toBe('Last 30 days');
  expect(labelOf('2026-03-15T10:30:00.000Z')).toBe('Last hour');
  expect(labelOf('2025-03-31T22:00:00.000Z')).toBe('Last 12 months');
  // As long, but of a month ago.
  expect(labelOf('2026-01-13T23:00:00.000Z', '2026-02-12T11:30:00.000Z')).toMatch(/14.*12/);
  expect(labelOf('2026-03-11T23:00:00.000Z')).toMatch(/12.*15/);
});
