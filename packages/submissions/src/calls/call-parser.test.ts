import fc from '@sluice/shared/testing/fast-check';
import { parseExactJson } from '@sluice/shared/text/json';
import { expect, test } from 'vitest';
import { JsonCursor } from '../reading/json-cursor.ts';
import { InvalidCall } from './call.ts';
import { parseCall } from './call-parser.ts';

const NOW = Date.UTC(2026, 2, 2);
const DAY_MS = 86_400_000;

/** Returns what a call becomes that arrives at a time; `undefined` when it is rejected. */
function parsedAt(now: number, call: unknown) {
  try {
    return parseCall(call, 'page', {}, { propertiesMax: 10, now: () => now });
  } catch (error) {
    if (error instanceof InvalidCall) return undefined;
    throw error;
  }
}

/** Returns why a call that arrives now is rejected. */
function errorOf(text: string): string | undefined {
  try {
    parseCall(parseExactJson(text), 'page', {}, { propertiesMax: 10, now: () => NOW });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

test('whenever a call arrives, it becomes the same event or is rejected', () => {
  const time = fc.integer({ min: NOW - 400 * DAY_MS, max: NOW + 400 * DAY_MS });
  const hex = (ms: number) => ms.toString(16).padStart(12, '0');
  const call = fc.tuple(time, fc.nat(3)).map(([ms, kind]) => {
    const timestamp = new Date(ms).toISOString();
    const uuid = `${hex(ms).slice(0, 8)}-${hex(ms).slice(8)}-7000-8000-000000000000`;
    const times = [{ timestamp }, { originalTimestamp: timestamp }, { messageId: uuid }];
    return { ms, call: { userId: 'ada', ...(times[kind] ?? { messageId: `node-next-${ms}-a` }) } };
  });
  const delay = fc.oneof(fc.integer({ min: -2_000, max: 2_000 }), fc.integer({ min: 0, max: 800 * DAY_MS }));
  fc.assert(
    // Arrivals about the moment from which the time is accepted, and at any later time.
    fc.property(call, delay, delay, ({ ms, call }, first, second) => {
      const earliest = ms - DAY_MS;
      const arrivals = [first, second].map((late) => parsedAt(earliest + late, call));
      for (const [index, late] of [first, second].entries()) {
        expect(arrivals[index]?.timestamp, `${late} ms after`).toBe(late < 0 ? undefined : ms);
      }
      if (arrivals[0] && arrivals[1]) expect(arrivals[0]).toEqual(arrivals[1]);
    }),
  );
});

const CALL = {
  timestamp: '2026-03-01T12:00:00.000Z',
  integrations: { All: true, list: [1, { a: null }] },
  type: 'track',
  userId: 'ada',
  anonymousId: 'anon',
  groupId: 'acme',
  event: 'Order Completed',
  properties: { total: 9.5, name: 'ä' },
  context: { library: { name: '@segment/analytics-node', version: '3.0.0' } },
  messageId: 'node-next-1772366400000-00000000-0000-4000-8000-000000000000',
  _metadata: { nodeVersion: '26.0.0' },
  sentAt: null,
};

/** Returns what a call of any type becomes, or why it is rejected. */
function outcome(call: unknown, batchContext: Readonly<Record<string, unknown>>) {
  try {
    return parseCall(call, undefined, batchContext, { propertiesMax: 3, now: () => NOW });
  } catch (error) {
    if (error instanceof InvalidCall) return error.message;
    throw error;
  }
}

test('a call whose objects stayed text becomes what it becomes when all of it is parsed', () => {
  const plain = fc.constantFrom<unknown>('', 'acme', 'ä', null, 7, true, { a: 1 }, { groupId: 'in' }, 'x'.repeat(513));
  const object = fc.dictionary(fc.constantFrom('groupId', 'messageId', 'traits', 'name', '__proto__', 'a'), plain);
  const value = fc.oneof(object, plain);
  const names = [...Object.keys(CALL), 'previousId', 'name', 'traits', 'category'];
  const type = fc.constantFrom('track', 'identify', 'group', 'page', 'screen', 'alias');
  let texts = 0;
  const generated = fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] });
  fc.assert(
    fc.property(generated, fc.subarray(Object.keys(CALL)), type, object, (call, kept, type, batchContext) => {
      const merged: Record<string, unknown> = { ...call };
      for (const name of kept) merged[name] = CALL[name as keyof typeof CALL];
      merged['type'] = type;
      const text = JSON.stringify(merged);
      const read = new JsonCursor(Buffer.from(text)).read().members;
      if (read === undefined) return;
      texts += 1;
      expect(outcome(read, batchContext), text).toEqual(outcome(JSON.parse(text), batchContext));
    }),
    { numRuns: 2_000 },
  );
  expect(texts).toBeGreaterThan(300);
});

test('traits in the context are those of the user where there are none beside it, or empty ones, as PHP sends', () => {
  const context = { traits: { plan: 'pro' } };
  for (const traits of [undefined, null, [], {}]) {
    expect(outcome({ type: 'identify', userId: 'ada', traits, context }, {}), String(traits)).toMatchObject({
      traits: '{"plan":"pro"}',
      changes: [{ name: 'plan', json: '"pro"' }],
    });
  }
  const own = outcome({ type: 'identify', userId: 'ada', traits: { seats: 7 }, context }, {});
  expect(own).toMatchObject({ traits: '{"seats":7}', changes: [{ name: 'seats', json: '7' }] });
  const ofGroup = outcome({ type: 'group', groupId: 'acme', traits: {}, context }, {});
  expect(ofGroup).toMatchObject({ traits: '{}', changes: [] });
});

test.each(['userId', 'anonymousId', 'instanceId', 'groupId', 'previousId', 'messageId'])(
  'an infinite number as %s is refused by name',
  (name) => {
    for (const number of ['1e999', '-1e999', `1${'0'.repeat(400)}`]) {
      const call = `{"userId":"ada","${name}":${number}}`;
      expect(errorOf(call), number).toBe(`${name} is a number that is too large for a 64-bit float.`);
    }
  },
);

test('an infinite number is refused wherever it would be stored', () => {
  for (const field of ['properties', 'context', 'traits']) {
    const error = errorOf(`{"userId":"ada","${field}":{"a":[1e999]}}`);
    expect(error).toBe(`${field} holds a number that is too large for a 64-bit float.`);
  }
  expect(errorOf('{"context":{"groupId":1e999}}')).toMatch(/^groupId is a number/);
});

test('numbers that a 64-bit float cannot tell apart are different identifiers', () => {
  const [one, other] = ['12345678901234567891', '12345678901234567892'].map(
    (userId) => parsedAt(NOW, parseExactJson(`{"userId":${userId}}`))?.userId,
  );
  expect([one, other]).toEqual(['12345678901234567891', '12345678901234567892']);
});
