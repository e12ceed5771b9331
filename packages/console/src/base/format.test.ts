import { expect, test } from 'vitest';
import { formatBytes, formatChange, formatCount, formatDuration } from './format.ts';

test.each([
  [150, 100, '+50%'],
  [50, 100, '-50%'],
  [5, 0, 'new'],
  [0, 0, '–'],
  [null, 100, '–'],
  [100, null, '–'],
])('the change of %s from %s is %s', (value, before, change) => {
  expect(formatChange(value, before)).toBe(change);
});

test.each([
  [0, '0 events'],
  [1, '1 event'],
  [2, '2 events'],
])('%s of a noun is %s', (count, text) => {
  expect(formatCount(count, 'event')).toBe(text);
});

test.each([
  [0, '0 seconds'],
  [0.44, '0.4 seconds'],
  [119, '119 seconds'],
  [120, '2 minutes'],
  [7_199, '120 minutes'],
  [7_200, '2 hours'],
  [604_800, '7 days'],
  [null, '–'],
])('%s seconds are %s', (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

test.each([
  [0, '0 byte'],
  [999, '999 byte'],
  [1_000, '1 kB'],
  [61_203_283_968, '61.2 GB'],
  [2e15, '2,000 TB'],
])('%s bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});
