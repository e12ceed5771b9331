import { expect, test } from 'vitest';
import { dateIn, startOfDate } from './zoned-time.ts';

const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'Pacific/Apia'];

test.each([
  ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00.000Z'],
  ['Europe/Berlin', '2026-03-30', '2026-03-29T22:00:00.000Z'],
  // Midnight is skipped.
  ['America/Havana', '2026-03-08', '2026-03-08T05:00:00.000Z'],
  // There are two midnights; the first begins the day.
  ['America/Havana', '2026-11-01', '2026-11-01T04:00:00.000Z'],
  ['Asia/Kathmandu', '2026-01-01', '2025-12-31T18:15:00.000Z'],
  ['UTC', '1969-12-31', '1969-12-31T00:00:00.000Z'],
  ['UTC', '0099-01-01', '0099-01-01T00:00:00.000Z'],
])('in %s, %s begins at %s', (timeZone, date, start) => {
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  expect(new Date(startOfDate(timeZone, { year, month, day })).toISOString()).toBe(start);
});

test('a day beyond the end of its month is one of the next', () => {
  expect(startOfDate('UTC', { year: 2026, month: 12, day: 32 })).toBe(Date.UTC(2027, 0, 1));
  expect(startOfDate('UTC', { year: 2026, month: 0, day: 1 })).toBe(Date.UTC(2025, 11, 1));
});

test.each(ZONES)('in %s a day is the time from its start to that of the next', (timeZone) => {
  const stepMs = 1_009 * 3_600_000 + 1_234_567;
  for (let ms = Date.UTC(1985, 0); ms < Date.UTC(2035, 0); ms += stepMs) {
    const date = dateIn(timeZone, ms);
    const start = startOfDate(timeZone, date);
    expect(start).toBeLessThanOrEqual(ms);
    expect(startOfDate(timeZone, { ...date, day: date.day + 1 })).toBeGreaterThan(ms);
    expect(dateIn(timeZone, start)).toEqual(date);
    expect(dateIn(timeZone, start - 1)).not.toEqual(date);
  }
});
