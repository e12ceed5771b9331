import { expect, test } from 'vitest';
import { type Hour, NO_COUNTS, withoutBetter } from './books.ts';

test('an hour in which one replica differs is not recorded as that of another one that differs less', () => {
  const hour = (begin: number, counts: Partial<Hour['counts']>, workspace = 'a'): Hour => ({
    ...{ workspace, hour: begin, kind: 'events', counts: { ...NO_COUNTS, ...counts } },
  });
  const first = [hour(1, { accepted: 3, stored: 2, missing: 1 }), hour(2, { accepted: 3, stored: 3 })];
  const whole = [hour(1, { accepted: 3, stored: 3 }), hour(2, { accepted: 3, stored: 3 })];
  expect(withoutBetter(whole, [])).toEqual(whole);
  expect(withoutBetter(whole, first)).toEqual(whole.slice(1));
  expect(withoutBetter([hour(1, { accepted: 3, stored: 3 }, 'b')], first)).toHaveLength(1);
  const worse = [hour(1, { accepted: 3, stored: 1, missing: 2 }), hour(2, { invented: 1 })];
  expect(withoutBetter(worse, first)).toEqual(worse);
  expect(withoutBetter(first, worse)).toEqual([]);
});
