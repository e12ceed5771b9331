import { expect, test } from 'vitest';
import {
  formatAgo,
  formatBytes,
  formatChange,
  formatCount,
  formatDuration,
  formatExact,
  formatNumber,
} from './format.ts';

test.each([
  [150, 100, '+50%'],
  [50, 100, '−50%'],
  [5, 0, 'new'],
  [0, 0, '–'],
  [null, 100, '–'],
  [100, null, '–'],
])('the change of %s from %s is %s', (value, before, change) => {
  expect(formatChange(value, before)).toBe(change);
});

test.each([
  [-1234.5, '−1,234.5'],
  [0, '0'],
  [null, '–'],
])('%s is written as %s', (value, text) => {
  expect(formatNumber(value)).toBe(text);
});

test.each([
  ['9007199254740993', '9,007,199,254,740,993'],
  ['-12345.600000000000000000001', '-12,345.600000000000000000001'],
  ['2026', '2026'],
  ['1e300', '1e300'],
])('%s in JSON is written as %s', (json, text) => {
  expect(formatExact(json)).toBe(text);
});

const NOW = Date.parse('2026-03-10T12:00:00Z');

test.each([
  ['2026-03-10T12:00:00Z', 'now'],
  ['2026-03-10T12:00:30Z', 'now'],
  ['2026-03-10T11:59:20Z', '40 sec. ago'],
  ['2026-03-10T11:48:00Z', '12 min. ago'],
  ['2026-03-10T10:01:00Z', '1 hr. ago'],
  ['2026-03-09T11:59:00Z', 'yesterday'],
  ['2026-03-04T12:00:00Z', '6 days ago'],
  ['2026-03-03T12:00:00Z', undefined],
  ['2026-03-10T12:02:00Z', undefined],
  ['never', undefined],
])('%s was %s', (time, text) => {
  expect(formatAgo(Date.parse(time), NOW)).toBe(text);
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
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1_000, '1 kB'],
  [61_203_283_968, '61.2 GB'],
  [2e15, '2,000 TB'],
])('%s bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});
