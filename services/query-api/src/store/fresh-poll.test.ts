import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterEach, expect, test } from 'vitest';
import { FreshPoll } from './fresh-poll.ts';

const FRESH_MS = 20;
/** Longer than polling goes on after a request, in milliseconds. */
const PAUSE_MS = 60_000;
/** For as long as several polls would take, in milliseconds. */
const WATCHED_MS = 10 * FRESH_MS;

let poll: FreshPoll<number> | undefined;

afterEach(() => poll?.stop());

/** Starts a poll that counts itself, on a clock that only moves when it is told to. */
function startPoll() {
  const state = { polls: 0, now: 0 };
  const query = async () => {
    state.polls += 1;
    return state.polls;
  };
  poll = new FreshPoll(query, { freshMs: FRESH_MS, now: () => state.now });
  poll.start();
  return { poll, state };
}

test('who looks gets a fresh value, and the polls stay paused', async () => {
  const { poll, state } = startPoll();
  expect(await poll.look()).toBe(1);
  state.now += PAUSE_MS;
  expect(await poll.look()).toBe(2);
  await delay(WATCHED_MS);
  expect(state.polls).toBe(2);
});

test('who needs the value keeps it polled for a while', async () => {
  const { poll, state } = startPoll();
  expect(await poll.value()).toBe(1);
  await eventually(() => state.polls).toBeGreaterThan(3);
  state.now += PAUSE_MS;
  const before = state.polls;
  await delay(WATCHED_MS);
  expect(state.polls).toBeLessThanOrEqual(before + 1);
});
