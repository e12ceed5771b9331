import { expect, test } from 'vitest';
import { describeSlowest } from './slowest-files.ts';

test('the ten slowest files are named, the slowest first', () => {
  const durations = Array.from({ length: 12 }, (_, index) => ({ file: `file-${index}`, ms: 1_000 * index }));
  const lines = describeSlowest(durations).split('\n');
  expect(lines).toHaveLength(10);
  expect(lines[0]).toBe('   11.0 s  file-11');
  expect(lines[9]).toBe('    2.0 s  file-2');
});
