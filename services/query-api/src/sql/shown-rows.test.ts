import { expect, test } from 'vitest';
import { hiddenEvents } from '../deletions/hidden-events.ts';
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
