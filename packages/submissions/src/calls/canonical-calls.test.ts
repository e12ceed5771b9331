import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { parseCall } from './call-parser.ts';
import { CanonicalCalls } from './canonical-calls.ts';

const NOW = Date.UTC(2026, 2, 2);
const LIMITS = { bytesMax: 100_000, timestampMsMax: NOW + 86_400_000 };
const OPTIONS = { propertiesMax: 1_000, now: () => NOW };

/** What both readers make of a text: the canonical one may leave it to the parser, but must never differ from it. */
function compare(text: string): boolean {
  const body = Buffer.from(text);
  const canonical = new CanonicalCalls(body, LIMITS).read(0);
  if (canonical === undefined) return false;
  expect(canonical).toEqual(parseCall(JSON.parse(text), undefined, {}, OPTIONS));
  return true;
}

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

test('what the common clients send is read without parsing it', () => {
  expect(compare(JSON.stringify(CALL))).toBe(true);
  expect(compare(JSON.stringify({ ...CALL, messageId: '0190163d-8694-739b-aea5-966c26f8ad90' }))).toBe(true);
  expect(compare(JSON.stringify({ ...CALL, context: {} }))).toBe(true);
  const { context: _context, messageId: _messageId, groupId: _groupId, ...few } = CALL;
  expect(compare(JSON.stringify(few))).toBe(true);
});

test.each([
  ['another type', { type: 'page' }],
  ['no type', { type: undefined }],
  ['no timestamp', { timestamp: undefined }],
  ['an organization in the context', { groupId: undefined, context: { groupId: 'acme' } }],
  ['a messageId of its own in the context', { context: { messageId: 'own' } }],
  ['a UUID in capitals', { messageId: '0190163D-8694-739B-AEA5-966C26F8AD90' }],
  ['a time that is far ahead', { timestamp: '2026-03-04T00:00:00.000Z' }],
  ['a number as an identifier', { userId: 5 }],
  ['an identifier before', { previousId: 'before' }],
  ['no identifier', { userId: undefined, anonymousId: undefined, groupId: undefined }],
  ['an empty identifier', { userId: '' }],
  ['an API key', { writeKey: 'key' }],
  ['no event name', { event: '' }],
])('a call with %s is parsed', (_what, changed) => {
  expect(compare(JSON.stringify({ ...CALL, ...changed }))).toBe(false);
});

test('a field that comes twice is parsed', () => {
  expect(compare(JSON.stringify(CALL).replace('{"timestamp"', '{"userId":"x","timestamp"'))).toBe(false);
});

test('whatever one byte of a call is changed to, both readers agree', () => {
  const text = JSON.stringify(CALL);
  let read = 0;
  for (let at = 0; at < text.length; at += 1) {
    for (const byte of '"\\{}[],:0Ae \t.-ü') {
      const changed = `${text.slice(0, at)}${byte}${text.slice(at + 1)}`;
      let parsed = true;
      try {
        parseCall(JSON.parse(changed), undefined, {}, OPTIONS);
      } catch {
        parsed = false;
      }
      const canonical = new CanonicalCalls(Buffer.from(changed), LIMITS);
      // The array goes on after the call.
      const isWhole = canonical.read(0) !== undefined && canonical.end === Buffer.byteLength(changed);
      if (isWhole) expect(parsed, changed).toBe(true);
      if (isWhole && compare(changed)) read += 1;
    }
  }
  expect(read).toBeGreaterThan(1_000);
});

test('of generated calls, both readers make the same', () => {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.constantFrom('', null, 'x'.repeat(513), 1e21, -0, 'groupId'),
  );
  const fields = Object.fromEntries(
    [...Object.keys(CALL), 'previousId', 'name', 'traits'].map((name) => [name, value]),
  );
  const call = fc.record(fields, { requiredKeys: [] });
  fc.assert(
    fc.property(call, fc.subarray(Object.keys(CALL)), (generated, kept) => {
      const merged: Record<string, unknown> = { ...generated };
      for (const name of kept) merged[name] = CALL[name as keyof typeof CALL];
      const text = JSON.stringify(merged);
      const canonical = new CanonicalCalls(Buffer.from(text), LIMITS).read(0);
      if (canonical !== undefined) compare(text);
    }),
    { numRuns: 2_000 },
  );
});
