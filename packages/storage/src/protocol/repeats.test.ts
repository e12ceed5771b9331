import fc from '@sluice/shared/testing/fast-check';
import { describe, expect, test } from 'vitest';
import { LOOK_UPS_MAX, rangesToLookUp, repeatsAmong, type Submitted, type TimeRange } from './repeats.ts';

const MINUTE_MS = 60_000;

interface Sent {
  readonly workspace?: string;
  readonly uuid?: string;
  readonly minute: number;
  /** Default: stamped on receipt. */
  readonly how?: 'stamped' | 'own time' | 'own time, which is that of the receipt';
  readonly isStored?: boolean;
}

function submitted(events: readonly Sent[]): Submitted[] {
  return events.map(({ workspace = 'w', uuid = 'u', minute, how = 'stamped', isStored = false }, place) => ({
    ...{ workspace_id: workspace, uuid, time_ms: minute * MINUTE_MS, place: isStored ? -1 : place },
    timed_by_receipt: how === 'own time' ? 0 : 1,
    stamped: how === 'stamped' && !isStored ? 1 : 0,
  }));
}

const repeats = (...events: Sent[]) => repeatsAmong(submitted(events));

describe('stamped events', () => {
  test('repeat the first of their uuid for ten minutes, and then begin anew', () => {
    expect(repeats(...[0, 8, 10, 12, 20, 22, 23].map((minute) => ({ minute })))).toEqual([1, 2, 4, 5]);
  });

  test('follow the order of the log, not of their times', () => {
    expect(repeats({ minute: 12 }, { minute: 0 }, { minute: 8 }, { minute: 30 }, { minute: 21 })).toEqual([2, 4]);
  });

  test('repeat stored ones, wherever the batches were cut', () => {
    expect(repeats({ minute: 0, isStored: true }, { minute: 10 }, { minute: 10.001 })).toEqual([1]);
  });

  test('repeat an event whose own time is that of its receipt, and none with another time', () => {
    expect(repeats({ minute: 0, how: 'own time, which is that of the receipt' }, { minute: 5 })).toEqual([1]);
    expect(repeats({ minute: 0, how: 'own time' }, { minute: 5 })).toEqual([]);
  });

  test('do not count as originals when they are repeats themselves', () => {
    expect(repeats({ minute: 0, how: 'own time' }, { minute: 0 }, { minute: 8 })).toEqual([1]);
  });
});

test('an event with its own time repeats one with the same time alone', () => {
  const how = 'own time';
  expect(repeats({ minute: 0, how }, { minute: 1, how }, { minute: 0, how }, { minute: 1 })).toEqual([2, 3]);
});

test('events of other workspaces and uuids are no repeats', () => {
  expect(repeats({ minute: 0 }, { minute: 0, uuid: 'v' }, { minute: 0, workspace: 'x' })).toEqual([]);
});

test('a batch has the same repeats in whatever pieces it is stored, and if pieces of it are stored already', () => {
  const sent = fc.record({
    uuid: fc.constantFrom('a', 'b'),
    minute: fc.integer({ min: -15, max: 45 }),
    how: fc.constantFrom('stamped' as const, 'stamped' as const, 'own time' as const),
  });
  fc.assert(
    fc.property(
      fc.array(sent, { maxLength: 25 }),
      fc.array(fc.nat(25)),
      fc.array(fc.boolean()),
      (all, cuts, stored) => {
        const events = submitted(all);
        const whole = new Set(repeatsAmong(events));
        const staying = events.filter(({ place }) => !whole.has(place));
        // What an attempt that failed has stored.
        let table = staying.filter((_, index) => stored[index] === true);
        const ends = [...new Set([...cuts, events.length])].sort((one, other) => one - other);
        let from = 0;
        for (const end of ends) {
          const known = table.map((event) => ({ ...event, place: -1, stamped: 0 as const }));
          const keys = new Set(known.map(keyOf));
          const piece = events.slice(from, end).filter((event) => !keys.has(keyOf(event)));
          const dropped = new Set(repeatsAmong([...known, ...piece]));
          table = [...table, ...piece.filter(({ place }) => !dropped.has(place))];
          from = Math.max(from, end);
        }
        expect(table.map(keyOf).sort()).toEqual(staying.map(keyOf).sort());
      },
    ),
  );
});

function keyOf({ uuid, time_ms }: Submitted): string {
  return `${uuid} ${time_ms}`;
}

test('many events of one uuid take no longer than others', () => {
  const how = 'own time, which is that of the receipt';
  const own = Array.from({ length: 100_000 }, (_, index): Sent => ({ minute: index / 1_000, how }));
  expect(repeatsAmong(submitted([...own, ...own]))).toHaveLength(100_000);
});

describe('the look-up of what stamped events may repeat', () => {
  const PERIOD_MS = 10 * MINUTE_MS;

  function rangesOf(times: readonly number[]): TimeRange[] {
    const periods = new Set(times.map((time) => Math.floor(time / PERIOD_MS)));
    return rangesToLookUp({
      first_stamped: Math.min(...times),
      last_stamped: Math.max(...times),
      stamped_periods: [...periods].sort((one, other) => one - other),
    });
  }

  const range = (first_stamped: number, last_stamped: number) => ({ first_stamped, last_stamped });

  test('has one range where events are near each other, as long as they need', () => {
    expect(rangesOf([5])).toEqual([range(5, 5)]);
    expect(rangesOf([PERIOD_MS - 1, 2 * PERIOD_MS, 4 * PERIOD_MS])).toEqual([range(PERIOD_MS - 1, 4 * PERIOD_MS)]);
    expect(rangesToLookUp({ first_stamped: 0, last_stamped: 0, stamped_periods: [] })).toEqual([]);
  });

  test('leaves out what is between events that are far apart', () => {
    const [old, later, now] = [3, 1_000 * PERIOD_MS + 4, 30_000 * PERIOD_MS + 5];
    const ofLater = range(1_000 * PERIOD_MS, 1_001 * PERIOD_MS - 1);
    expect(rangesOf([old, later, now])).toEqual([range(old, PERIOD_MS - 1), ofLater, range(30_000 * PERIOD_MS, now)]);
  });

  test('has few ranges, which read the smallest gaps', () => {
    // Each gap is wider than the one before.
    const times = Array.from({ length: 40 }, (_, index) => (3 * index + index * index) * PERIOD_MS);
    const ranges = rangesOf(times);
    expect(ranges).toHaveLength(LOOK_UPS_MAX);
    expect(ranges[0]?.last_stamped).toBe((times[40 - LOOK_UPS_MAX] ?? 0) + PERIOD_MS - 1);
  });

  test('covers every event, in ranges that do not overlap with ten minutes around them', () => {
    const time = fc.oneof(fc.integer({ min: 0, max: 300 * PERIOD_MS }), fc.integer({ min: 0, max: 2e12 }));
    fc.assert(
      fc.property(fc.array(time, { minLength: 1, maxLength: 60 }), (times) => {
        const ranges = rangesOf(times);
        expect(ranges.length).toBeLessThanOrEqual(LOOK_UPS_MAX);
        const isCovered = (one: number) =>
          ranges.some(({ first_stamped, last_stamped }) => first_stamped <= one && one <= last_stamped);
        expect(times.filter((one) => !isCovered(one))).toEqual([]);
        for (const [index, { first_stamped }] of ranges.slice(1).entries()) {
          const before = ranges[index]?.last_stamped ?? 0;
          expect(first_stamped - PERIOD_MS).toBeGreaterThan(before + PERIOD_MS);
        }
      }),
    );
  });
});
