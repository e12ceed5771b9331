import { expect, test } from 'vitest';
import { lastDue } from './digest.ts';

test.each([
  ['UTC', 8, '2026-03-01T08:00:00.000Z', '2026-03-01T08:00:00.000Z', '2026-03-01T00:00:00.000Z'],
  ['UTC', 8, '2026-03-01T07:59:59.999Z', '2026-02-28T08:00:00.000Z', '2026-02-28T00:00:00.000Z'],
  ['Europe/Berlin', 0, '2026-03-01T22:59:59.999Z', '2026-02-28T23:00:00.000Z', '2026-02-28T23:00:00.000Z'],
  ['Asia/Kolkata', 9, '2026-03-01T04:00:00.000Z', '2026-03-01T03:30:00.000Z', '2026-02-28T18:30:00.000Z'],
  // Clocks skip the hour: it is due when they have.
  ['Europe/Berlin', 2, '2026-03-29T12:00:00.000Z', '2026-03-29T01:00:00.000Z', '2026-03-28T23:00:00.000Z'],
  // They have it twice: it is due once.
  ['Europe/Berlin', 2, '2026-10-25T12:00:00.000Z', '2026-10-25T00:00:00.000Z', '2026-10-24T22:00:00.000Z'],
])('in %s at %i, up to %s', (timeZone, hour, upTo, due, end) => {
  const { dueMs, endMs } = lastDue({ timeZone, hour }, Date.parse(upTo));
  expect([dueMs, endMs].map((ms) => new Date(ms).toISOString())).toEqual([due, end]);
});
