import { expect, test } from 'vitest';
import { RecentDeletions } from './recent-deletions.ts';

const deletion = (user: string, version: number, workspace = 'w') => ({ workspace, user, version });

test('a deletion is missing at a server until a poll has brought it from there', () => {
  const recent = new RecentDeletions(1_000);
  recent.add('a', [deletion('ada', 5), deletion('bob', 6, 'v')]);
  expect(recent.missingAt(['a'], 'w')).toEqual([]);
  expect(recent.missingAt(['b'], 'w')).toEqual([{ user: 'ada', version: 5 }]);
  expect(recent.missingAt(['b'], 'v')).toEqual([{ user: 'bob', version: 6 }]);
  recent.add('b', [deletion('ada', 5)]);
  expect(recent.missingAt(['b'], 'w')).toEqual([]);
});

test('of several deletions of a user the newest counts', () => {
  const recent = new RecentDeletions(1_000);
  recent.add('a', [deletion('ada', 5)]);
  recent.add('b', [deletion('ada', 5)]);
  recent.add('a', [deletion('ada', 9)]);
  recent.add('b', [deletion('ada', 5)]);
  expect(recent.missingAt(['b'], 'w')).toEqual([{ user: 'ada', version: 9 }]);
  expect(recent.missingAt(['a'], 'w')).toEqual([]);
});

test('it is forgotten when no poll has brought it for so long that every server that is read has it', () => {
  let now = 0;
  const recent = new RecentDeletions(1_000, () => now);
  recent.add('a', [deletion('ada', 5)]);
  now = 900;
  recent.add('a', [deletion('ada', 5), deletion('bob', 7)]);
  now = 1_900;
  recent.add('a', [deletion('bob', 7)]);
  expect(recent.missingAt(['b'], 'w')).toEqual([
    { user: 'ada', version: 5 },
    { user: 'bob', version: 7 },
  ]);
  now = 1_901;
  recent.add('a', []);
  expect(recent.missingAt(['b'], 'w')).toEqual([{ user: 'bob', version: 7 }]);
});

test('where a poll has not listed all deletions of a workspace, what others lack is known from its oldest on', () => {
  const now = 10_000;
  const recent = new RecentDeletions(60_000, () => now);
  recent.add('a', [deletion('ada', 5)], new Map([['w', 3_000]]));
  expect(recent.unlistedUntil('b', 'w')).toBe(7_000);
  // It has its own, and lists all of the other workspace.
  expect(recent.unlistedUntil('a', 'w')).toBe(Number.NEGATIVE_INFINITY);
  expect(recent.unlistedUntil('b', 'v')).toBe(Number.NEGATIVE_INFINITY);
  recent.add('c', [], new Map([['w', 2_000]]));
  expect([recent.unlistedUntil('b', 'w'), recent.unlistedUntil('c', 'w')]).toEqual([8_000, 7_000]);
  recent.add('c', []);
  recent.add('a', []);
  expect(recent.unlistedUntil('b', 'w')).toBe(Number.NEGATIVE_INFINITY);
});
