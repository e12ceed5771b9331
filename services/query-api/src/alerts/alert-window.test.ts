import { describe, expect, test } from 'vitest';
import { type AlertWindow, lastWindows, lengthOf, windowOf } from './alert-window.ts';

test.each([
  ['1m', 60_000],
  ['120m', 7_200_000],
  ['72h', 259_200_000],
  ['90d', 7_776_000_000],
  ['121m', undefined],
  ['73h', undefined],
  ['91d', undefined],
  ['0m', undefined],
  ['01h', undefined],
  ['1w', undefined],
  ['1.5h', undefined],
  [' 1h', undefined],
  ['', undefined],
])('the window %j', (text, expected) => {
  const window = windowOf(text);
  expect(window && lengthOf(window)).toBe(expected);
});

describe('the last whole window', () => {
  const shown = (text: string, timeZone: string, before: string) => {
    const { last, before: earlier } = lastWindows(windowOf(text) as AlertWindow, timeZone, Date.parse(before));
    expect(earlier.endMs).toBe(last.startMs);
    return [earlier.startMs, last.startMs, last.endMs].map((ms) => new Date(ms).toISOString());
  };

  test.each([
    ['15m', 'UTC', '2026-03-01T12:00:59.999Z', '11:30 11:45 12:00'],
    ['15m', 'UTC', '2026-03-01T12:01:00.000Z', '11:31 11:46 12:01'],
    ['1h', 'UTC', '2026-03-01T11:59:59.999Z', '09:00 10:00 11:00'],
    ['1h', 'UTC', '2026-03-01T12:00:00.000Z', '10:00 11:00 12:00'],
    // Half an hour off.
    ['2h', 'Asia/Kolkata', '2026-03-01T12:29:59.999Z', '07:30 09:30 11:30'],
  ])('%s in %s at %s', (text, timeZone, before, expected) => {
    expect(
      shown(text, timeZone, before)
        .map((time) => time.slice(11, 16))
        .join(' '),
    ).toBe(expected);
  });

  test('of days ends at midnight of its time zone, also where a day has 23 hours', () => {
    expect(shown('1d', 'Europe/Berlin', '2026-03-30T21:59:59.999Z')).toEqual([
      ...['2026-03-27T23:00:00.000Z', '2026-03-28T23:00:00.000Z', '2026-03-29T22:00:00.000Z'],
    ]);
    expect(shown('7d', 'UTC', '2026-03-01T00:00:00.000Z')).toEqual([
      ...['2026-02-15T00:00:00.000Z', '2026-02-22T00:00:00.000Z', '2026-03-01T00:00:00.000Z'],
    ]);
  });
});
