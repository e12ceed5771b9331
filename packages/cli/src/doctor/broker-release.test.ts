import { expect, test } from 'vitest';
import { releaseOf } from './broker-release.ts';

test.each([
  [1, '3.3', 'older'],
  [14, '3.6', 'older'],
  [16, '3.7', 'older'],
  [21, '3.9', 'tested'],
  [23, '4.0', 'tested'],
  [30, '4.3', 'tested'],
  [31, 'newer than 4.3', 'newer'],
])('a broker that knows metadata.version %i is Kafka %s, %s', (level, release, age) => {
  expect(releaseOf(level)).toEqual({ release, age });
});
