import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { NO_PAUSE } from '../reading/pause.ts';
import { RowCollector } from '../rows/partition-rows.ts';
import type { CallForm } from './call.ts';
import { readCallOutline } from './call-outline.ts';
import { collectCalls } from './call-rows.ts';
import { readPosthogOutline } from './posthog/posthog-outline.ts';
import { parseRejectedCall } from './rejected-call.ts';

const NOW = Date.UTC(2026, 2, 2, 12);
const DAY_MS = 86_400_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type Row = Readonly<Record<string, unknown>>;

/** JSON text, since some of it is no value of JavaScript. */
const text = (value: unknown) => JSON.stringify(value);
const long = (length: number, of = 'x') => text(of.repeat(length));
const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const list = (length: number) => `[${Array(length).fill(0).join()}]`;

/** What a member may be at its ends, and just beyond them. */
const SCALARS = [
  ...['null', '""', '" "', 'true', 'false', '0', '-0', '1e308', '-1e308', '1e999', '5e-324', '0.1', '"a"'],
  ...['9007199254740993', '123456789012345678901234567890', '"\\u0000"', '"\\ud800"', '"\\uD83D\\uDE00"', '{}', '[]'],
];
const IDENTIFIERS = [...SCALARS, ...[512, 513].flatMap((length) => [long(length), long(length, '🦊')]), '["a"]'];
const NAMES = [...SCALARS, ...[200, 201].flatMap((length) => [long(length), long(length, '🦊')])];
const TIMES = [
  ...SCALARS,
  ...[0, 1, 99_999_999_999, 100_000_000_000, Number.MAX_SAFE_INTEGER].map(text),
  ...[Date.UTC(2000, 0, 1) - 1, Date.UTC(2000, 0, 1), NOW + DAY_MS, NOW + DAY_MS + 1].flatMap((ms) => [
    text(ms),
    text(String(ms)),
    text(new Date(ms).toISOString()),
  ]),
  ...['+275760-09-13T00:00:00Z', '-271821-04-20T00:00:00Z', '2026-02-30', '2026-03-01T12:00:00+14:00'].map(text),
];
const OBJECTS = [
  ...SCALARS,
  ...[31, 32, 33].map(nested),
  ...[9_990, 10_001].map((length) => `{"l":${list(length)}}`),
  ...['{"a":1e999}', '{"a":-0}', '{"\\ud800":1}', '{"a":"\\ud800"}', '{"__proto__":1}', '{"a":1,"a":2}', '{"":null}'],
  ...['{"groupId":7,"traits":[],"library":{"name":7}}', `{"a":${long(30_000)}}`],
];

/** Members of a call by their extremes. */
const CALL: Readonly<Record<string, readonly string[]>> = {
  type: ['track', 'identify', 'group', 'page', 'screen', 'alias', 'merge'].map(text),
  ...{ event: NAMES, name: NAMES, userId: IDENTIFIERS, anonymousId: IDENTIFIERS, groupId: IDENTIFIERS },
  ...{ previousId: IDENTIFIERS, messageId: IDENTIFIERS, timestamp: TIMES, originalTimestamp: TIMES, sentAt: TIMES },
  ...{ properties: OBJECTS, context: OBJECTS, traits: OBJECTS },
};
const EVENT: Readonly<Record<string, readonly string[]>> = {
  event: [...NAMES, ...['$identify', '$groupidentify', '$create_alias', '$set'].map(text)],
  ...{ distinct_id: IDENTIFIERS, $distinct_id: IDENTIFIERS, uuid: IDENTIFIERS, timestamp: TIMES, sent_at: TIMES },
  ...{ properties: OBJECTS, $set: OBJECTS, $set_once: OBJECTS, $unset: [...OBJECTS, '["a","a"]', '[1]'] },
};

type Members = Readonly<Record<string, string>>;

/** A call with up to four members at their extremes together. */
function anyOf(usual: Members, extremes: Readonly<Record<string, readonly string[]>>): fc.Arbitrary<string> {
  const names = fc.subarray(Object.keys(extremes), { maxLength: 4 });
  const values = Object.entries(extremes).map(([name, values]) => [name, fc.constantFrom(...values)] as const);
  return fc.tuple(names, fc.record(Object.fromEntries(values))).map(([names, values]) => {
    const members: Record<string, string> = { ...usual };
    for (const name of names) members[name] = values[name] ?? 'null';
    return objectOf(members);
  });
}

function objectOf(members: Members): string {
  const texts = Object.entries(members).map(([name, value]) => `${text(name)}:${value}`);
  return `{${texts.join()}}`;
}

const USUAL_CALL: Members = { type: '"track"', event: '"e"', userId: '"a"' };
const USUAL_EVENT: Members = { event: '"e"', distinct_id: '"a"' };

async function read(form: CallForm, calls: readonly string[], context: string) {
  const body =
    form === 'posthog'
      ? `{"api_key":"k","sent_at":${context},"batch":[${calls.join()}]}`
      : `{"batch":[${calls.join()}],"context":${context}}`;
  const bytes = Buffer.from(body);
  const outline = await (form === 'posthog'
    ? readPosthogOutline(bytes, 100, NO_PAUSE)
    : readCallOutline(bytes, 'batch', 100, NO_PAUSE));
  const collector = new RowCollector(1, () => undefined);
  let version = NOW * 1_000;
  const options = {
    ...{ callBytesMax: 20_000, propertiesMax: 5, now: () => NOW, form, workspace: 'w' },
    ...{ idempotencyKey: undefined, client: 'other', keys: [] },
    links: { needsRow: () => true },
    versions: () => {
      version += 1;
      return version;
    },
  };
  const rejected = await collectCalls(outline, collector, options, NO_PAUSE);
  const all = collector.finish();
  const rowsOf = (wanted: string) =>
    all
      .filter(({ kind }) => kind === wanted)
      .flatMap(({ lines }) => lines.toString().trimEnd().split('\n'))
      .map((line) => ({ line, row: JSON.parse(line) as Row }));
  return { rejected, events: rowsOf('events'), kept: rowsOf('rejected') };
}

const IDENTIFIER_COLUMNS = ['user_id', 'anonymous_id', 'group_id', 'previous_id'] as const;

test.each([
  ['batch', USUAL_CALL, CALL, OBJECTS],
  ['posthog', USUAL_EVENT, EVENT, TIMES],
] as const)(
  'calls at all their extremes together are taken or rejected one by one, and again in the same way: %s',
  async (form, usual, extremes, contexts) => {
    const calls = fc.array(anyOf(usual, extremes), { minLength: 1, maxLength: 3 });
    const context = fc.oneof({ weight: 4, arbitrary: fc.constant('{}') }, fc.constantFrom(...contexts));
    let [taken, rejections] = [0, 0];
    await fc.assert(
      fc.asyncProperty(calls, context, async (calls, context) => {
        const { rejected, events, kept } = await read(form, calls, context);
        taken += events.length;
        rejections += rejected.length;
        expect(events.length + rejected.length).toBe(calls.length);
        expect(kept).toHaveLength(rejected.length);
        for (const { line } of kept) expect(parseRejectedCall(Buffer.from(line))?.workspace_id).toBe('w');
        for (const { row } of events) {
          expect(row['uuid']).toMatch(UUID);
          expect(row['timestamp']).toBeGreaterThanOrEqual(Date.UTC(2000, 0, 1));
          expect(row['timestamp']).toBeLessThanOrEqual(NOW + DAY_MS);
          expect(String(row['event']).length).toBeGreaterThan(0);
          for (const column of IDENTIFIER_COLUMNS) {
            const length = [...String(row[column] ?? 'x')].length;
            expect([column, length >= 1 && length <= 512]).toEqual([column, true]);
          }
        }
        const again = await read(form, calls, context);
        const reasonsOf = (found: typeof rejected) => found.map(({ index, reason }) => `${index} ${reason}`);
        expect(reasonsOf(again.rejected)).toEqual(reasonsOf(rejected));
      }),
      { numRuns: 500 },
    );
    expect([taken > 100, rejections > 100]).toEqual([true, true]);
  },
);

test.each([
  ['batch', USUAL_CALL, CALL],
  ['posthog', USUAL_EVENT, EVENT],
] as const)('each member alone at each of its extremes is taken or rejected: %s', async (form, usual, extremes) => {
  for (const [name, values] of Object.entries(extremes)) {
    for (const value of values) {
      const { rejected, events } = await read(form, [objectOf({ ...usual, [name]: value })], '{}');
      expect([name, value.slice(0, 80), events.length + rejected.length]).toEqual([name, value.slice(0, 80), 1]);
    }
  }
});
