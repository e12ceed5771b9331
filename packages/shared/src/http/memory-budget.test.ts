import { expect, test } from 'vitest';
import fc from '../testing/fast-check.ts';
import { MemoryBudget, type Reservation } from './memory-budget.ts';

const open = (budget: MemoryBudget, hash: string, workspace = 'a') => budget.open({ hash, workspace });

/** Reserves byte by byte until no more fit, and returns how many did. */
function fill(reservation: Reservation): number {
  let bytes = 0;
  while (reservation.grow(1)) bytes += 1;
  return bytes;
}

test('one key alone holds half of the memory, many keys of a workspace two thirds, and a newcomer finds some', () => {
  const budget = new MemoryBudget(900);
  expect(fill(open(budget, 'one'))).toBe(450);
  for (let index = 0; index < 200; index += 1) fill(open(budget, `other-${index}`));
  expect(budget.reservedBytes).toBeGreaterThan(590);
  expect(budget.reservedBytes).toBeLessThanOrEqual(600);
  expect(fill(open(budget, 'newcomer', 'b'))).toBeGreaterThanOrEqual(150);
});

test('the requests of one key share what it may hold, and what one gives back another one finds', () => {
  const budget = new MemoryBudget(900);
  const [one, other] = [open(budget, 'k'), open(budget, 'k')];
  expect(one.grow(450)).toBe(true);
  expect(other.grow(1)).toBe(false);
  one.shrink(200);
  expect(fill(other)).toBe(200);
  one.release();
  expect(fill(other)).toBe(250);
  expect(budget.reservedBytes).toBe(450);
});

test('nothing is granted at the limit and one beyond it: what fits is what can be reserved', () => {
  const budget = new MemoryBudget(900);
  const one = open(budget, 'k');
  expect([one.fits(450), one.fits(451), one.grow(451), one.bytes]).toEqual([true, false, false, 0]);
  expect([one.grow(450), one.fits(0), one.fits(1)]).toEqual([true, true, false]);
});

test('a reservation that was released holds nothing, whatever is done with it or a part of it afterwards', () => {
  const budget = new MemoryBudget(900);
  const whole = open(budget, 'k');
  const part = whole.part();
  expect([whole.grow(100), part.grow(50), whole.bytes, part.bytes]).toEqual([true, true, 150, 50]);
  part.release();
  part.release();
  expect([whole.bytes, part.grow(1), part.part().grow(1)]).toEqual([100, false, false]);
  const late = whole.part();
  late.grow(10);
  whole.release();
  whole.release();
  whole.shrink(5);
  late.release();
  expect([whole.grow(1), late.grow(1), budget.reservedBytes]).toEqual([false, false, 0]);
  // Nothing is left of the key either.
  expect(fill(open(budget, 'k'))).toBe(450);
});

test('after any steps of any keys, what is reserved is the sum of what they hold; and nothing once all are released', () => {
  const step = fc.record({
    of: fc.nat(5),
    bytes: fc.nat(300),
    what: fc.constantFrom('grow', 'part', 'shrink', 'release'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const budget = new MemoryBudget(1_000);
      const wholes = Array.from({ length: 6 }, (_, index) => open(budget, `k${index % 3}`, `w${index % 2}`));
      const parts: Reservation[] = [];
      for (const { of, bytes, what } of steps) {
        const whole = wholes[of] as Reservation;
        if (what === 'grow') expect(whole.fits(bytes)).toBe(whole.grow(bytes));
        if (what === 'shrink') whole.shrink(Math.min(bytes, whole.bytes - heldBy(parts, whole)));
        if (what === 'release') whole.release();
        if (what === 'part') {
          const part = whole.part();
          part.grow(bytes);
          parts.push(Object.assign(part, { whole }));
        }
        expect(budget.reservedBytes).toBe(wholes.reduce((sum, one) => sum + (one.bytes || 0), 0));
        expect(budget.reservedBytes).toBeLessThanOrEqual(1_000);
      }
      for (const one of [...parts, ...wholes]) one.release();
      expect(budget.reservedBytes).toBe(0);
      expect(fill(open(budget, 'k0'))).toBe(500);
    }),
  );
});

function heldBy(parts: readonly Reservation[], whole: Reservation): number {
  return parts
    .filter((part) => (part as Reservation & { readonly whole: Reservation }).whole === whole)
    .reduce((sum, { bytes }) => sum + bytes, 0);
}
