import { expect, test } from 'vitest';
import { withLocalDays } from './dates.ts';

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
