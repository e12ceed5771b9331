import { describe, expect, test } from 'vitest';
import fc from '../testing/fast-check.ts';
import { MemoryBudget, type Reservation } from './memory-budget.ts';

const MAX = 900;
const keyOf = (hash: string, workspace = 'w') => ({ hash, workspace });

/** Grows a reservation by one byte after the other; returns what it holds. */
function fill(reservation: Reservation): number {
  while (reservation.grow(1));
  return reservation.bytes;
}

describe('shares', () => {
  test('a key alone can hold a half, also by several requests', () => {
    const budget = new MemoryBudget(MAX);
    const [first, second] = [budget.open(keyOf('k')), budget.open(keyOf('k'))];
    expect(first.grow(400)).toBe(true);
    expect(fill(second)).toBe(50);
    expect(budget.reservedBytes).toBe(450);
  });

  test('many keys of one workspace can hold two thirds, and a key of another one then a sixth', () => {
    const budget = new MemoryBudget(MAX);
    const held = Array.from({ length: 20 }, (_, key) => fill(budget.open(keyOf(`k${key}`))));
    expect(held.slice(0, 3)).toEqual([450, 112, 28]);
    // The last byte is a third too much.
    expect(budget.reservedBytes).toBe(599);
    expect(fill(budget.open(keyOf('other', 'v')))).toBe(150);
  });

  test('the same key in another workspace counts what the key holds', () => {
    const budget = new MemoryBudget(MAX);
    fill(budget.open(keyOf('k')));
    expect(fill(budget.open(keyOf('k', 'v')))).toBe(112);
  });
});

test('a reservation does not fit by one byte too many, and holds nothing of it', () => {
  const budget = new MemoryBudget(MAX);
  const reservation = budget.open(keyOf('k'));
  expect(reservation.fits(450)).toBe(true);
  expect(reservation.fits(451)).toBe(false);
  expect(reservation.grow(451)).toBe(false);
  expect([reservation.bytes, budget.reservedBytes]).toEqual([0, 0]);
});

test('what is released is free for others, once, and what was released grows no more', () => {
  const budget = new MemoryBudget(MAX);
  const reservation = budget.open(keyOf('k'));
  reservation.grow(450);
  reservation.release();
  reservation.release();
  reservation.shrink(10);
  expect(reservation.grow(1)).toBe(false);
  expect(reservation.fits(1)).toBe(false);
  expect(budget.reservedBytes).toBe(0);
  expect(fill(budget.open(keyOf('k')))).toBe(450);
});

test('a part belongs to its whole, and goes with it or before', () => {
  const budget = new MemoryBudget(MAX);
  const whole = budget.open(keyOf('k'));
  whole.grow(100);
  const [part, other] = [whole.part(), whole.part()];
  expect([part.grow(200), other.grow(50), part.grow(101)]).toEqual([true, true, false]);
  expect([whole.bytes, part.bytes, other.bytes]).toEqual([350, 200, 50]);
  part.shrink(20);
  part.release();
  part.release();
  expect([whole.bytes, part.bytes, other.bytes, budget.reservedBytes]).toEqual([150, 0, 50, 150]);
  expect(part.grow(1)).toBe(false);
  whole.release();
  other.release();
  expect([budget.reservedBytes, other.grow(1)]).toEqual([0, false]);
});

test('whatever is reserved and released: no more than the budget, and nothing at the end', () => {
  const operation = fc.record({ of: fc.nat(5), grow: fc.boolean(), bytes: fc.integer({ min: 0, max: 500 }) });
  fc.assert(
    fc.property(fc.array(operation), (operations) => {
      const budget = new MemoryBudget(MAX);
      const all = Array.from({ length: 6 }, (_, index) => budget.open(keyOf(`k${index % 3}`, `w${index % 2}`)));
      for (const { of, grow, bytes } of operations) {
        const reservation = all[of] as Reservation;
        const before = budget.reservedBytes;
        const fits = reservation.fits(bytes);
        if (grow) expect(reservation.grow(bytes)).toBe(fits);
        else reservation.shrink(Math.min(bytes, reservation.bytes));
        expect(budget.reservedBytes - before).toBeLessThanOrEqual(grow && fits ? bytes : 0);
        expect(budget.reservedBytes).toBe(all.reduce((sum, one) => sum + one.bytes, 0));
        expect(budget.reservedBytes).toBeLessThanOrEqual(MAX);
      }
      for (const reservation of all) reservation.release();
      expect(budget.reservedBytes).toBe(0);
      // Nobody's account is left behind.
      expect(fill(budget.open(keyOf('k0', 'w0')))).toBe(450);
    }),
  );
});
