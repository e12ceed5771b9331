import fc from '@sluice/shared/testing/fast-check';
import { parseExactJson } from '@sluice/shared/text/json';
import { expect, test } from 'vitest';
import { type CallClock, msOf, timeOf } from './call-time.ts';

const NOW = Date.UTC(2026, 2, 2, 12);
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const at = (sentAt: unknown, receivedMs = NOW): CallClock => ({ receivedMs, nowMs: receivedMs, sentAt });
const iso = (ms: number) => new Date(ms).toISOString();
const timeAt = (ms: number, clock: CallClock) => timeOf({ timestamp: iso(ms) }, undefined, undefined, clock).ms;

test('a time that can be taken is never changed, whatever sentAt is', () => {
  const ms = fc.integer({ min: Date.UTC(2000, 0, 1), max: NOW + DAY_MS });
  const sentAt = fc.oneof(
    fc.integer({ min: 0, max: NOW + 400 * DAY_MS }).map(iso),
    fc.constantFrom('soon', null, 7, {}),
  );
  fc.assert(
    fc.property(ms, sentAt, (ms, sentAt) => {
      expect(timeAt(ms, at(sentAt))).toBe(ms);
    }),
  );
});

test.each([
  ['three days ahead', 3 * DAY_MS],
  ['little over a day ahead', DAY_MS + 61 * MINUTE_MS],
  ['in 1970', -NOW],
])('a clock that is %s is corrected by sentAt, in whole minutes', (_when, offMs) => {
  const sent = NOW + offMs;
  expect(timeAt(sent - 3_600_000, at(iso(sent)))).toBe(NOW - 3_600_000);
  // The request was under way for longer.
  expect(timeAt(sent - 3_600_000, at(iso(sent), NOW + 20_000))).toBe(NOW - 3_600_000);
  expect(timeAt(sent - 3_600_000, at(iso(sent), NOW + 40_000))).toBe(NOW - 3_600_000 + MINUTE_MS);
  // It was sent again with a new sentAt.
  expect(timeAt(sent - 3_600_000, at(iso(sent + 5_000), NOW + 5_100))).toBe(NOW - 3_600_000);
});

test('a time of any number is a time that can be, is absent, or is rejected', () => {
  const extremes = fc.constantFrom(
    ...[-1, 1].flatMap((sign) => [1e308, 1.79e308, 1e306, 1e305, 9e15, 1e11].map((ms) => sign * ms)),
  );
  const number = fc.oneof(extremes, fc.double());
  fc.assert(
    fc.property(number, number, (timestamp, sentAt) => {
      let ms: number | undefined;
      try {
        ms = timeOf({ timestamp }, undefined, undefined, at(sentAt)).ms;
      } catch {
        return;
      }
      if (ms === undefined) return;
      expect(ms).toBeGreaterThanOrEqual(Date.UTC(2000, 0, 1));
      expect(ms).toBeLessThanOrEqual(NOW + DAY_MS);
    }),
  );
});

test('numbers so large that they are not exact correct nothing', () => {
  const time = timeOf({ timestamp: -1.926_780_193_555_543_3e25 }, undefined, undefined, at(-1.926_780_193_555_543e25));
  expect(time.ms).toBeUndefined();
});

test('a call that was sent within a minute by such a clock has the time of receipt', () => {
  const sent = NOW + 3 * DAY_MS;
  for (const ageMs of [-59_000, 0, 2_000, 59_000]) {
    expect(timeOf({ timestamp: iso(sent - ageMs) }, undefined, undefined, at(iso(sent)))).toEqual({
      ms: undefined,
      sent: iso(sent - ageMs),
    });
  }
});

test.each([
  ['is right', iso(NOW)],
  ['is behind', iso(NOW - 30 * DAY_MS)],
  ['was written by another clock', iso(-3_600_000)],
  ['cannot be read', 'soon'],
  ['is absent', undefined],
])('a time that is ahead is rejected where sentAt %s', (_what, sentAt) => {
  expect(() => timeAt(NOW + 3 * DAY_MS, at(sentAt))).toThrow('timestamp must be at most one day from now.');
});

test('the time in a messageId or a UUIDv7 is corrected alike', () => {
  const sent = NOW + 3 * DAY_MS;
  const clock = at(iso(sent));
  const hex = (sent - 3_600_000).toString(16).padStart(12, '0');
  const uuid = `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
  expect(timeOf({}, undefined, uuid, clock)).toEqual({ ms: NOW - 3_600_000, sent: undefined });
  expect(timeOf({}, `node-next-${sent - 3_600_000}-a`, undefined, clock).ms).toBe(NOW - 3_600_000);
});

test('a time that cannot be read, or is before 2000, counts as absent, and what came is kept', () => {
  const others = { originalTimestamp: iso(NOW) };
  for (const timestamp of ['soon', '1999-12-31T23:59:59Z', '2026-02-30', {}, [1], true, -1]) {
    const sent = typeof timestamp === 'string' ? timestamp : JSON.stringify(timestamp);
    expect(timeOf({ timestamp }, undefined, undefined, at(undefined))).toEqual({ ms: undefined, sent });
    expect(timeOf({ timestamp, ...others }, undefined, undefined, at(undefined))).toEqual({ ms: NOW, sent });
  }
  const kept = timeOf({ timestamp: `\ud800${'x'.repeat(600)}` }, undefined, undefined, at(undefined)).sent;
  expect([kept?.length, kept?.isWellFormed()]).toEqual([512, true]);
});

test('a time may be a number of seconds or milliseconds', () => {
  const given = ['1772366400', '1772366400.1234567890123', '1772366400000', '"1772366400"', '"1772366400000"'];
  expect(given.map((text) => msOf(parseExactJson(text)))).toEqual(
    [0, 123, 0, 0, 0].map((more) => 1_772_366_400_000 + more),
  );
  for (const other of ['20260301', '', ' ', null, undefined, true, {}, Number.NaN]) expect(msOf(other)).toBeUndefined();
});
