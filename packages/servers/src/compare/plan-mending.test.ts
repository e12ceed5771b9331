import { expect, test } from 'vitest';
import { planMending, type ShownEvent } from './plan-mending.ts';

const NOON = Date.UTC(2026, 2, 1, 12);
const MINUTE_MS = 60_000;

/** An event with a time of its own. */
function event(content: string, fields: Partial<ShownEvent> = {}): ShownEvent {
  return { workspace: 'w', uuid: 'u', timeMs: NOON, receivedUs: (NOON + MINUTE_MS) * 1_000, content, ...fields };
}

/** An event that came without a timestamp, so many minutes after noon. */
function stamped(content: string, minute: number): ShownEvent {
  const timeMs = NOON + minute * MINUTE_MS;
  return event(content, { timeMs, receivedUs: timeMs * 1_000 + 5 });
}

function plan(one: readonly ShownEvent[], other: readonly ShownEvent[]) {
  const { send, remove } = planMending([one, other]);
  return {
    send: send.map(({ event: { content }, isStamped }) => (isStamped ? `${content}, stamped` : content)),
    remove: remove.map((events) => events.map(({ content }) => content)),
  };
}

test('what both show is left alone', () => {
  const shown = [event('a'), stamped('b', 1), stamped('c', 12)];
  expect(plan(shown, shown.toReversed())).toEqual({ send: [], remove: [[], []] });
  expect(plan([], [])).toEqual({ send: [], remove: [[], []] });
});

test('what one shows alone is sent, whichever it is, and whatever else has the uuid', () => {
  const other = event('d', { workspace: 'v' });
  expect(plan([event('a')], [other])).toEqual({ send: ['a', 'd'], remove: [[], []] });
  expect(plan([], [event('a'), event('b', { timeMs: NOON + 1 })])).toEqual({ send: ['a', 'b'], remove: [[], []] });
});

test('of two that repeat each other the first that was accepted stays', () => {
  const [first, second] = [event('z'), event('a', { receivedUs: (NOON + 2 * MINUTE_MS) * 1_000 })];
  expect(plan([second], [first])).toEqual({ send: ['z'], remove: [['a'], []] });
  expect(plan([stamped('z', 1)], [stamped('a', 11)])).toEqual({ send: ['z, stamped'], remove: [[], ['a']] });
  expect(plan([stamped('z', 1)], [{ ...stamped('a', 11), timeMs: NOON + 11 * MINUTE_MS + 1 }])).toEqual({
    send: ['z, stamped', 'a'],
    remove: [[], []],
  });
});

test('what both show stays before what was accepted first', () => {
  const both = stamped('both', 5);
  expect(plan([both], [both, stamped('early', 0)])).toEqual({ send: ['early'], remove: [[], []] });
  expect(plan([both, stamped('x', 30)], [both, stamped('y', 25)])).toEqual({
    send: ['y, stamped'],
    remove: [['x'], []],
  });
});

test('an event that a server has beside a near one is no repeat of it, and is not sent as stamped', () => {
  const [kept, byChance] = [stamped('kept', 1), stamped('chance', 4)];
  expect(plan([kept, byChance], [kept])).toEqual({ send: ['chance'], remove: [[], []] });
});
