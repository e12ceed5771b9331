import { parse, validate, version } from 'uuid';
import { expect, test } from 'vitest';
import { uuidV7 } from './uuid.ts';

const NOW = Date.UTC(2026, 2, 1);

function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

test('a uuid is a UUIDv7 with the time that it was given', () => {
  const id = uuidV7(NOW);
  expect([validate(id), version(id), timeOf(id)]).toEqual([true, 7, NOW]);
  expect((parse(id)[8] ?? 0) >> 6, 'the variant').toBe(0b10);
});

test('uuids grow, also within a millisecond and while the clock is behind', () => {
  const times = [...Array(10_000).fill(NOW + 1), NOW - 3_600_000, NOW + 1, NOW + 50, NOW + 2];
  const ids = times.map(uuidV7);
  expect(ids.every((id) => validate(id) && version(id) === 7)).toBe(true);
  expect([...ids].sort()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  // More than 4,096 in a millisecond take from the next ones.
  expect(timeOf(ids[9_999] ?? '')).toBe(NOW + 3);
  expect(timeOf(ids.at(-2) ?? '')).toBe(NOW + 50);
});
