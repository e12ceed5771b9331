import { describe, expect, test } from 'vitest';
import { endOfDay, parseTimestamp } from './timestamp.ts';

describe('parseTimestamp', () => {
  test.each([
    ['2026-03-01T12:00:00.123Z', '2026-03-01T12:00:00.123Z'],
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T12:00:00', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01t12:00:00z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01 12:00', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T12:00:00.1Z', '2026-03-01T12:00:00.100Z'],
    ['2026-03-01T12:00:00,5Z', '2026-03-01T12:00:00.500Z'],
    ['2026-03-01T12:00:00.123987654Z', '2026-03-01T12:00:00.123Z'],
    ['2026-03-01T00:30:00+02:00', '2026-02-28T22:30:00.000Z'],
    ['2026-03-01T23:30:00-0130', '2026-03-02T01:00:00.000Z'],
    ['2026-03-01T12:00:00+05', '2026-03-01T07:00:00.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
  ])('reads %s', (text, expected) => {
    expect(new Date(parseTimestamp(text)?.ms ?? Number.NaN).toISOString()).toBe(expected);
    expect(parseTimestamp(text)?.dateOnly).toBe(false);
  });

  test('a date alone is a whole day in UTC', () => {
    const day = parseTimestamp('2026-03-01');
    expect(day).toEqual({ ms: Date.UTC(2026, 2, 1), dateOnly: true });
    expect(new Date(endOfDay(day?.ms ?? 0)).toISOString()).toBe('2026-03-01T23:59:59.999Z');
  });

  test.each([
    '',
    'yesterday',
    '1772366400000',
    '2026-02-30T00:00:00Z',
    '2026-02-30T00:00:00.000Z',
    '2026-13-01T00:00:00.000Z',
    '2026-03-01T24:00:00.000Z',
    '2026-03-01T12:60:00.000Z',
    '2025-02-29',
    '2026-13-01',
    '2026-00-10',
    '2026-03-01T24:00:00Z',
    '2026-03-01T12:60:00Z',
    '2026-03-01T12:00:60Z',
    '2026-03-01T12:00:00+24:00',
    '2026-03-01T12Z',
    '2026-03-01T12:00:00Z ',
    '26-03-01',
    '2026-03-01Z',
    '٢٠٢٦-03-01',
  ])('refuses %j', (text) => {
    expect(parseTimestamp(text)).toBeUndefined();
  });
});
