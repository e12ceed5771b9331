import { expect, test } from 'vitest';
import { type CopyTime, requireTime } from './plan-copy.ts';

/** As plan-copy.ts expects of a copy: so many bytes a second, and so long for what else it does. */
const BYTES_PER_SECOND = 10_000_000;
const SPARE_SECONDS = 60;

const copy: CopyTime = { name: 'a1', bytes: 100 * BYTES_PER_SECOND, bandwidth: 0, headroom: 100 + SPARE_SECONDS };

test('a copy is refused from the second on in which Kafka may delete what it needs', () => {
  expect(() => requireTime(copy)).not.toThrow();
  expect(() => requireTime({ ...copy, headroom: Number.POSITIVE_INFINITY })).not.toThrow();
  expect(() => requireTime({ ...copy, headroom: copy.headroom - 1 })).toThrow(
    /^The copy may take 100 s, and Kafka deletes what a1 has not stored yet in \d+ s/,
  );
  expect(() => requireTime({ ...copy, bytes: copy.bytes + BYTES_PER_SECOND })).toThrow('The copy may take 101 s');
  expect(() => requireTime({ ...copy, headroom: 0 })).toThrow('in 0 s');
});

test('a bandwidth makes a copy slower, and never faster than the disks are', () => {
  const bandwidth = BYTES_PER_SECOND / 2;
  expect(() => requireTime({ ...copy, bandwidth })).toThrow('The copy may take 200 s');
  expect(() => requireTime({ ...copy, bandwidth, headroom: 200 + SPARE_SECONDS })).not.toThrow();
  expect(() => requireTime({ ...copy, bandwidth: 10 * BYTES_PER_SECOND })).not.toThrow();
  expect(() => requireTime({ ...copy, bandwidth: 10 * BYTES_PER_SECOND, headroom: copy.headroom - 1 })).toThrow();
});
