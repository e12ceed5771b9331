import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { sampledSpans, weeksBefore } from './overview-reader.ts';

test.each([
  [[], 0],
  [[0], 4],
  // The first day is not whole.
  [[6], 3],
  [[7], 2],
  [[13, 20], 2],
  [[14], 1],
  [[28], 0],
])('with events on the days %j there are %i weeks to compare with', (days, weeks) => {
  expect(weeksBefore(Array.from({ length: 29 }, (_, day) => (days.includes(day) ? 5 : 0)))).toBe(weeks);
});

const HOUR_MS = 3_600_000;

test('a sample has the same share of each day, also of a short one, at the beginning of each of its quarters', () => {
  const days = fc.array(fc.constantFrom(23, 24, 25), { minLength: 1, maxLength: 29 });
  fc.assert(
    fc.property(days, fc.double({ min: 0.000_01, max: 1, noNaN: true }), (hours, share) => {
      const bounds = [0];
      for (const length of hours) bounds.push((bounds.at(-1) ?? 0) + length * HOUR_MS);
      const spans = sampledSpans(bounds, share);
      for (const [index, length] of hours.entries()) {
        const [fromMs = 0, toMs = 0] = bounds.slice(index, index + 2);
        const within = spans.map((span) => Math.min(span.toMs, toMs) - Math.max(span.fromMs, fromMs));
        const sampledMs = within.filter((ms) => ms > 0).reduce((sum, ms) => sum + ms, 0);
        expect(Math.abs(sampledMs - share * length * HOUR_MS)).toBeLessThanOrEqual(8);
      }
      for (const [index, { fromMs }] of spans.entries())
        expect(fromMs).toBeGreaterThanOrEqual(spans[index - 1]?.toMs ?? 0);
    }),
  );
});
