import { expect, test } from 'vitest';
import { hiddenEvents } from '../store/deletions/hidden-events.ts';
import { DeletionsUnknown } from '../store/read-failures.ts';
import { VALUE_CHARACTERS_MAX } from '../store/request-limits.ts';
import { shownRows } from './shown-rows.ts';

const NOTHING_HIDDEN = { hiddenCondition: async () => undefined, keptFrom: async () => undefined };

test('a workspace without deletions and retention shows all of its rows', async () => {
  expect(await shownRows('a', NOTHING_HIDDEN)).toEqual({
    ...{ 'x-sluice-workspace': 'a', 'x-sluice-deletions': 'none', 'x-sluice-kept-from': 'all' },
  });
});

test('pending deletions, retention, and deletions of other servers are named', async () => {
  const headers = await shownRows('a', {
    hiddenCondition: async () => hiddenEvents,
    keptFrom: async () => 1_767_225_600_000,
    deletionsElsewhere: () => [{ user: 'jäne\r\n', version: 7 }],
  });
  const { 'x-sluice-deleted-users': users = '', ...others } = headers;
  expect(others).toEqual({
    ...{ 'x-sluice-workspace': 'a', 'x-sluice-deletions': 'some', 'x-sluice-kept-from': '1767225600000' },
  });
  expect(JSON.parse(Buffer.from(users, 'base64').toString())).toEqual([['jäne\r\n', 7]]);
  // No header ends inside of it.
  expect(users).toMatch(/^[A-Za-z0-9+/=]+$/);
});

test('more deletions of other servers than ClickHouse takes in a header are refused before', async () => {
  // Each character of the name has six in JSON, of which base64 makes eight.
  const headersOf = (characters: number) =>
    shownRows('a', {
      ...NOTHING_HIDDEN,
      deletionsElsewhere: () => [{ user: '\u0001'.repeat(characters), version: 7 }],
    });
  const characters = Math.floor((VALUE_CHARACTERS_MAX - 12) / 8);
  expect((await headersOf(characters))['x-sluice-deleted-users']?.length).toBeGreaterThan(VALUE_CHARACTERS_MAX - 16);
  await expect(headersOf(characters + 1)).rejects.toThrow(DeletionsUnknown);
});
