import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { JsonCursor } from '../../reading/json-cursor.ts';
import { Nobody } from '../../reading/nobody.ts';
import { InvalidCall } from '../call.ts';
import { rowsOfRejectedCall } from '../replay-call.ts';
import { parsePosthogEvent } from './posthog-event.ts';

const NOW = Date.UTC(2026, 2, 1, 12);

/** Returns what an event becomes, or why it is rejected. */
function outcome(event: unknown) {
  try {
    return parsePosthogEvent(event, { propertiesMax: 4, now: () => NOW });
  } catch (error) {
    if (error instanceof InvalidCall) return error.message;
    throw error;
  }
}

const EVENT = { event: 'e', distinct_id: 'ada', uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002' };

test('an event whose properties stayed text becomes what it becomes when all of it is parsed', () => {
  const plain = fc.constantFrom<unknown>('', 'acme', 'ä', null, 7, true, false, { a: 1 }, ['a'], 'x'.repeat(513));
  const object = fc.dictionary(fc.constantFrom('company', 'a', '__proto__', 'token', 'b'), plain);
  const value = fc.oneof(object, plain);
  const properties = fc.record(
    Object.fromEntries(
      [
        ...['distinct_id', 'alias', '$anon_distinct_id', '$device_id', '$process_person_profile', '$is_identified'],
        ...['$groups', '$group_type', '$group_key', '$group_set', '$set', '$set_once', '$unset', 'token', 'api_key'],
        ...['$lib', 'plan'],
      ].map((name) => [name, value]),
    ),
    { requiredKeys: [] },
  );
  const name = fc.constantFrom('e', '$identify', '$groupidentify', '$create_alias', '$pageview', '');
  const other = fc.record(
    { distinct_id: value, uuid: plain, timestamp: plain, $set: value, $set_once: value, $unset: value },
    { requiredKeys: [] },
  );
  let [texts, taken] = [0, 0];
  fc.assert(
    fc.property(name, properties, other, fc.subarray(Object.keys(EVENT)), (event, properties, other, kept) => {
      const merged: Record<string, unknown> = { ...other, event, properties };
      for (const field of kept) merged[field] = EVENT[field as keyof typeof EVENT];
      const text = JSON.stringify(merged);
      const read = new JsonCursor(Buffer.from(text)).read().members;
      if (read === undefined) return;
      texts += 1;
      const expected = outcome(JSON.parse(text));
      if (typeof expected === 'object') taken += 1;
      expect(outcome(read), text).toEqual(expected);
    }),
    { numRuns: 6_000 },
  );
  expect(texts).toBeGreaterThan(300);
  expect(taken).toBeGreaterThan(20);
});

test('an event that was rejected is taken later as its client sent it', async () => {
  const text = JSON.stringify({ event: '$pageview', properties: { distinct_id: 'ada', token: '', n: 1 } });
  const rejected = { workspace_id: 'w', format: 'posthog', call: text, reason: '', received_at: NOW * 1_000 } as const;
  const nobody = new Nobody(['kiosk']);
  const limits = { callBytesMax: 1_000, propertiesMax: 4, now: () => NOW, partitionCount: 1, id: 'a', nobody };
  const rows = await rowsOfRejectedCall(rejected, limits);
  if (typeof rows === 'string') throw new Error(rows);
  expect(rows.map(({ lines }) => JSON.parse(String(lines)))).toMatchObject([
    { event: '$pageview', user_id: 'ada', properties: { distinct_id: 'ada', n: 1 }, received_at: NOW * 1_000 },
  ]);
  const isLinked = async (distinct_id: string) => {
    const call = JSON.stringify({ event: '$identify', distinct_id, properties: { $anon_distinct_id: 'a' } });
    const found = await rowsOfRejectedCall({ ...rejected, call }, limits);
    return typeof found !== 'string' && found.some(({ lines }) => String(lines).includes('"visitor"'));
  };
  expect([await isLinked('ada'), await isLinked('Kiosk')]).toEqual([true, false]);
  expect(await rowsOfRejectedCall({ ...rejected, call: '{"event":"e"}' }, limits)).toBe('distinct_id is needed.');
  expect(await rowsOfRejectedCall({ ...rejected, format: undefined }, limits)).toContain('type must be one of');
});
