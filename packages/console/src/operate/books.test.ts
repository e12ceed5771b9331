import { expect, test } from 'vitest';
import type { Audits } from '../base/base.ts';
import { auditAttention, lineOfDay } from './books.ts';

const NOTHING = {
  ...{ accepted: 0, stored: 0, repeats: 0, deadLetters: 0, deleted: 0, expired: 0, waiting: 0 },
  ...{ givenUp: 0, unknown: 0, missing: 0, invented: 0, duplicates: 0 },
};

type Day = Audits['books'][number];

function day(start: string, counts: Partial<Day['events']> = {}, more: Partial<Day> = {}): Day {
  const accepted = { accepted: 1_234_567, stored: 1_234_567 };
  const events = { ...NOTHING, ...accepted, ...counts };
  return { start: `${start}T00:00:00.000Z`, auditedHours: 24, events, changes: NOTHING, rejected: NOTHING, ...more };
}

function auditsOf(...books: Day[]): Audits {
  const dates = { startDate: '2026-02-01T00:00:00.000Z', endDate: '2026-03-03T09:00:00.000Z' };
  return { interval: 'day', ...dates, auditedThrough: '2026-03-03T03:00:00.000Z', books, audits: [], differences: [] };
}

const NOW = Date.UTC(2026, 2, 3, 9);
const textOf = (...books: Day[]) => lineOfDay(auditsOf(...books), NOW)?.text;

test('the last day that is audited whole is said, yesterday by its name', () => {
  const today = day('2026-03-03', { accepted: 5 }, { auditedHours: 3 });
  expect(lineOfDay(auditsOf(day('2026-03-01'), day('2026-03-02'), today), NOW)).toEqual({
    text: '1,234,567 events accepted yesterday (UTC), all accounted for.',
    isWell: true,
  });
  expect(textOf(day('2026-02-27'), day('2026-02-28'))).toBe(
    '1,234,567 events accepted on Feb 28, 2026 (UTC), all accounted for.',
  );
});

test('where no day is audited whole, the hours of the last one are said', () => {
  expect(textOf(day('2026-03-02', { accepted: 1 }, { auditedHours: 1 }))).toBe(
    '1 event accepted in 1 hour of Mar 2, 2026 (UTC), all accounted for.',
  );
  expect(lineOfDay(auditsOf(), NOW)).toBeUndefined();
});

test('what is not accounted for is no good news, nor is what was given up', () => {
  const lineOf = (counts: Partial<Day['events']>) => lineOfDay(auditsOf(day('2026-03-02', counts)), NOW);
  const events = '1,234,567 events accepted yesterday (UTC)';
  for (const counts of [{ missing: 1 }, { invented: 1 }, { duplicates: 1 }]) {
    expect(lineOf(counts)).toEqual({ text: `${events}; not all rows are accounted for.`, isWell: false });
  }
  const given = { unknown: 2, givenUp: 3 };
  const text = `${events}; of 2 nothing that is left says where they are, 3 given up by the operator.`;
  expect(lineOf(given)).toEqual({ text, isWell: false });
  expect(lineOf({ waiting: 7, deadLetters: 1, deleted: 2, expired: 3, repeats: 4 })?.isWell).toBe(true);
});

test('whatever does not balance in any of the books needs attention', () => {
  expect(auditAttention(undefined)).toEqual([]);
  expect(auditAttention(auditsOf(day('2026-03-01', { unknown: 1, givenUp: 1 })))).toEqual([]);
  const lost = day('2026-02-03', { missing: 2, duplicates: 1 }, { changes: { ...NOTHING, missing: 1, invented: 5 } });
  expect(auditAttention(auditsOf(lost, day('2026-03-02')))).toMatchObject([
    { found: 'Rows that do not balance: 3 missing, 5 that nobody submitted, 1 stored twice.' },
  ]);
  expect(auditAttention(auditsOf(day('2026-03-02', { missing: 1 })))).toMatchObject([
    { found: 'Row that does not balance: 1 missing.' },
  ]);
});
