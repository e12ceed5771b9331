import { readFile } from 'node:fs/promises';
import { parseExactJson } from '@sluice/shared/text/json';
import { type CallForm, InvalidCall, type RejectionReason } from '@sluice/submissions/calls/call';
import { readCallOutline } from '@sluice/submissions/calls/call-outline';
import { collectCalls } from '@sluice/submissions/calls/call-rows';
import { readPosthogOutline } from '@sluice/submissions/calls/posthog/posthog-outline';
import { NO_PAUSE } from '@sluice/submissions/reading/pause';
import { uuidV7TimeMs } from '@sluice/submissions/reading/submission-limits';
import { RowCollector } from '@sluice/submissions/rows/partition-rows';
import { eventCall } from '@sluice/trench-api/events/event-call';
import { describe, expect, test } from 'vitest';

// Each row of the tables "Taken, changed, rejected" of the guides is tried with the code that reads calls.

type Row = Readonly<Record<string, unknown>>;
type Check = () => Promise<void> | void;

const DAY_MS = 86_400_000;
/** The time of receipt, in milliseconds since 1970: a whole minute. trench-api writes the time of the machine into uuids. */
const NOW = Math.floor(Date.now() / 60_000) * 60_000;
const YESTERDAY = NOW - DAY_MS;
const LIMITS = { callBytesMax: 256 * 1_024, propertiesMax: 1_000, now: () => NOW };
const NEXT_WEEK = new Date(NOW + 7 * DAY_MS).toISOString();
const UUID = '0195512a-0064-4e5f-8a6b-0c1d2e3f4a5b';

/** What becomes of a call: its rows of events and changes, or why it is rejected. */
interface Outcome {
  readonly events: readonly Row[];
  readonly changes: readonly Row[];
  readonly reasons: readonly RejectionReason[];
}

async function readBody(form: CallForm, body: unknown): Promise<Outcome> {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const outline =
    form === 'posthog'
      ? await readPosthogOutline(bytes, 100, NO_PAUSE)
      : await readCallOutline(bytes, 'batch', 100, NO_PAUSE);
  const collector = new RowCollector(1, () => undefined);
  let version = NOW * 1_000;
  const rejected = await collectCalls(
    outline,
    collector,
    {
      ...LIMITS,
      form,
      ...{ workspace: 'w', idempotencyKey: undefined, client: undefined, keys: [] },
      links: { needsRow: () => true },
      versions: () => {
        version += 1;
        return version;
      },
    },
    NO_PAUSE,
  );
  const rows = (wanted: string) =>
    collector
      .finish()
      .filter(({ kind }) => kind === wanted)
      .flatMap(({ lines }) => lines.toString().trimEnd().split('\n'))
      .map((line) => JSON.parse(line) as Row);
  return { events: rows('events'), changes: rows('changes'), reasons: rejected.map(({ reason }) => reason) };
}

/** Reads an event as a family of clients writes it: members besides those that it needs, or the whole text. */
type Read = (members: Row | string) => Promise<Outcome>;

const CALL = { type: 'track', event: 'e', userId: 'ada' };
const EVENT = { event: 'e', distinct_id: 'ada' };
const segment = (members: Row | string) =>
  readBody('batch', typeof members === 'string' ? `{"batch":[${members}]}` : { batch: [{ ...CALL, ...members }] });
const posthog = (members: Row | string) =>
  readBody('posthog', typeof members === 'string' ? members : { ...EVENT, ...members });

async function taken(read: Read, members: Row | string, event: Row): Promise<Outcome> {
  const outcome = await read(members);
  expect(outcome.reasons, JSON.stringify(members)).toEqual([]);
  expect(outcome.events).toMatchObject([event]);
  return outcome;
}

/** Expects that calls are rejected, each for its reason. */
async function rejected(read: Read, ...calls: readonly [RejectionReason, Row | string][]): Promise<void> {
  for (const [reason, members] of calls) {
    expect((await read(members)).reasons, JSON.stringify(members).slice(0, 100)).toEqual([reason]);
  }
}

const uuidOf = ({ events }: Outcome) => events[0]?.['uuid'];
const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });
const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, 1]));
const long = (length: number) => 'x'.repeat(length);

const OF_SEGMENT: Readonly<Record<string, Check>> = {
  '`null`, an empty identifier, an empty time': async () => {
    const absent = { anonymousId: '', groupId: null, timestamp: '', properties: null, context: null };
    const { events } = await taken(segment, absent, { user_id: 'ada', timestamp: NOW });
    for (const name of ['anonymous_id', 'group_id', 'properties', 'context'])
      expect(events[0]).not.toHaveProperty(name);
  },
  'identifiers and names that are numbers or booleans': async () => {
    await taken(
      segment,
      { userId: 7, anonymousId: true, event: 5 },
      { user_id: '7', anonymous_id: 'true', event: '5' },
    );
  },
  '`[]` as `properties`, `context`, `traits` (PHP)': async () => {
    const empty = { type: 'identify', properties: [], context: [], traits: [] };
    await taken(segment, empty, { type: 'identify', properties: {}, traits: {} });
  },
  'a page or screen with its name in `event`': async () => {
    await taken(segment, { type: 'screen', event: 'Home' }, { event: 'Home' });
    await taken(segment, { type: 'screen', event: 'Home', name: 'Start' }, { event: 'Start' });
  },
  'a `messageId` that is no UUID': async () => {
    const first = await taken(segment, { messageId: 'm-1' }, { context: { messageId: 'm-1' } });
    expect(uuidOf(await segment({ messageId: 'm-1' }))).toBe(uuidOf(first));
    await taken(segment, { messageId: UUID }, { uuid: UUID });
  },
  'calls without `messageId`': async () => {
    expect(uuidOf(await segment({ timestamp: NOW }))).not.toBe(uuidOf(await segment({ timestamp: NOW })));
  },
  '`originalTimestamp` without `timestamp`': async () => {
    await taken(segment, { originalTimestamp: new Date(YESTERDAY).toISOString() }, { timestamp: YESTERDAY });
  },
  'times that are numbers, or their digits': async () => timesAsNumbers(segment),
  'times that cannot be read, or before 2000': async () => unreadableTimes(segment),
  'clocks that are days ahead or in 1970, with a `sentAt` alike': async () => wrongClocks(segment, 'sentAt'),
  'other times more than a day ahead': async () => rejected(segment, ['time', { timestamp: NEXT_WEEK }]),
  'traits of `identify` and `group` that are `null`': async () => {
    const traits = { plan: null };
    for (const call of [
      { type: 'identify', traits },
      { type: 'group', groupId: 'acme', traits },
    ]) {
      const { changes } = await segment(call);
      expect(changes).toMatchObject([{ property: 'plan' }]);
      expect(changes[0]).not.toHaveProperty('value');
    }
  },
  '`alias`': async () => {
    await taken(segment, { type: 'alias', previousId: 'x' }, { type: 'alias', properties: { previousId: 'x' } });
  },
  '`group` without `groupId`': async () => rejected(segment, ['identifier', { type: 'group' }]),
  'objects as identifiers or names; more than 512 and 200 characters': async () => {
    const wrong = [{ userId: {} }, { anonymousId: ['a'] }, { userId: long(513) }];
    await rejected(segment, ...wrong.map((call) => ['identifier', call] as [RejectionReason, Row]));
    await rejected(segment, ['name', { event: {} }], ['name', { event: long(201) }]);
    await taken(segment, { userId: long(512), event: long(200) }, { user_id: long(512) });
  },
  'texts, numbers and other arrays as `properties`, `context`, `traits`': async () => {
    for (const name of ['properties', 'context', 'traits']) {
      for (const value of ['x', 7, [1]]) await rejected(segment, ['properties', { type: 'identify', [name]: value }]);
    }
  },
  'more than 256 KiB, 32 levels, 10,000 values or 1,000 traits in a call': async () => {
    await rejected(
      segment,
      ['too_large', { properties: { text: long(LIMITS.callBytesMax) } }],
      ['properties', { properties: nested(33) }],
      ['malformed', { properties: { list: Array(10_001).fill(0) } }],
      ['properties', { type: 'identify', traits: members(1_001) }],
    );
    await taken(segment, { properties: nested(32) }, {});
    await taken(segment, { type: 'identify', traits: members(1_000) }, {});
  },
  'numbers beyond 64-bit floats, such as `1e999`': async () => {
    await rejected(segment, ['identifier', '{"type":"track","event":"e","userId":1e999}']);
    await rejected(segment, ['properties', '{"type":"track","event":"e","userId":"a","properties":{"n":1e999}}']);
  },
};

async function timesAsNumbers(read: Read): Promise<void> {
  for (const timestamp of [YESTERDAY, YESTERDAY / 1_000].flatMap((time) => [time, String(time)])) {
    await taken(read, { timestamp }, { timestamp: YESTERDAY });
  }
  await rejected(read, ['time', { timestamp: 99_999_999_999 }]);
  await taken(read, { timestamp: 100_000_000_000 }, { timestamp: NOW });
}

const UNREADABLE = ['2026-03-01T12:00:00:000Z', 'soon', '1999-12-31T00:00:00Z'];

async function unreadableTimes(read: Read): Promise<void> {
  for (const timestamp of UNREADABLE) {
    await taken(read, { timestamp }, { timestamp: NOW, context: { sentTimestamp: timestamp } });
  }
}

/** @param sentAt the name of the time of sending */
async function wrongClocks(read: Read, sentAt: string): Promise<void> {
  for (const clock of [NOW + 7 * DAY_MS, 0]) {
    const timestamp = new Date(clock + 3_600_000).toISOString();
    const sent = { timestamp, [sentAt]: new Date(clock + 7_200_000).toISOString() };
    await taken(read, sent, { timestamp: NOW - 3_600_000, context: { sentTimestamp: timestamp } });
  }
}

async function notStored(read: Read, ...names: readonly string[]): Promise<void> {
  const { events } = await read(Object.fromEntries(names.map((name) => [name, 'not stored'])));
  expect(events).toHaveLength(1);
  expect(JSON.stringify(events)).not.toContain('not stored');
}

const OF_POSTHOG: Readonly<Record<string, Check>> = {
  '`null`, an empty `distinct_id`, an empty time': async () => {
    const absent = { properties: null, $set: null, timestamp: '', uuid: null };
    await taken(posthog, absent, { user_id: 'ada', timestamp: NOW });
    await taken(posthog, { distinct_id: null, $distinct_id: 'eve' }, { user_id: 'eve' });
    await rejected(posthog, ['identifier', { distinct_id: '' }]);
  },
  '`$distinct_id`, `$token`': async () => {
    await taken(posthog, { distinct_id: undefined, $distinct_id: 'eve' }, { user_id: 'eve' });
    const outline = await readPosthogOutline(Buffer.from('{"$token":"key","event":"e"}'), 1, NO_PAUSE);
    expect(outline.writeKey).toBe('key');
  },
  '`distinct_id` in the properties': async () => {
    await taken(posthog, { distinct_id: undefined, properties: { distinct_id: 'eve' } }, { user_id: 'eve' });
  },
  '`distinct_id` that is no string': async () => {
    await taken(posthog, { distinct_id: 7 }, { user_id: '7' });
    await taken(posthog, { distinct_id: { a: [1] } }, { user_id: '{"a":[1]}' });
  },
  'names, and types and keys of groups, that are numbers or booleans': async () => {
    await taken(posthog, { event: 5, properties: { $groups: { company: 7 } } }, { event: '5', group_id: 'company:7' });
    const group = { event: '$groupidentify', properties: { $group_type: 1, $group_key: true } };
    await taken(posthog, group, { group_id: '1:true' });
  },
  '`[]` as `properties`, `$set`, `$groups` and the like (PHP)': async () => {
    await taken(posthog, { properties: [], $set: [], $set_once: [], $unset: [] }, { properties: {} });
    await taken(posthog, { properties: { $groups: [], $set: [], $set_once: [], $unset: [] } }, { user_id: 'ada' });
  },
  '`uuid` that is no UUID': async () => {
    expect(uuidOf(await posthog({ uuid: 'u-1' }))).toBe(uuidOf(await posthog({ uuid: 'u-1' })));
    expect(uuidOf(await posthog({ uuid: 'u-2' }))).not.toBe(uuidOf(await posthog({ uuid: 'u-1' })));
    await taken(posthog, { uuid: UUID }, { uuid: UUID });
  },
  'times that are numbers, or their digits': async () => timesAsNumbers(posthog),
  'times that cannot be read, or before 2000': async () => unreadableTimes(posthog),
  'clocks that are days ahead or in 1970, with a `sent_at` alike': async () => wrongClocks(posthog, 'sent_at'),
  'other times more than a day ahead': async () => rejected(posthog, ['time', { timestamp: NEXT_WEEK }]),
  'equal events in one request, without `uuid`': async () => {
    const event = { ...EVENT, timestamp: NOW };
    const [first, again] = [await readBody('posthog', [event, event]), await readBody('posthog', [event, event])];
    const uuids = first.events.map(({ uuid }) => uuid);
    expect(new Set(uuids).size).toBe(2);
    expect(again.events.map(({ uuid }) => uuid)).toEqual(uuids);
  },
  'events with neither `uuid` nor `timestamp`': async () => {
    expect(uuidOf(await posthog({}))).not.toBe(uuidOf(await posthog({})));
  },
  '`null` in `$set`, and in `$set_once`': async () => {
    const { changes } = await posthog({ $set: { plan: null }, $set_once: { first: null } });
    expect(changes).toMatchObject([{ property: 'plan' }]);
    expect(changes[0]).not.toHaveProperty('value');
  },
  'events without a name or a `distinct_id`': async () => {
    await rejected(posthog, ['name', { event: '' }], ['name', { event: null }], ['identifier', { distinct_id: null }]);
  },
  '`$groupidentify` without `$group_type` or `$group_key`': async () => {
    await rejected(posthog, ['identifier', { event: '$groupidentify', properties: { $group_type: 'company' } }]);
    await rejected(posthog, ['identifier', { event: '$groupidentify', properties: { $group_key: 'acme' } }]);
  },
  'objects as names; more than 200 characters, and 512 of a `distinct_id`': async () => {
    await rejected(posthog, ['name', { event: {} }], ['name', { event: long(201) }]);
    await rejected(posthog, ['identifier', { distinct_id: long(513) }]);
    await taken(posthog, { event: long(200), distinct_id: long(512) }, { user_id: long(512) });
  },
  'texts, numbers and other arrays as `properties`, `$set`, `$groups` and the like': async () => {
    for (const value of ['x', 7, [1]]) {
      await rejected(posthog, ['properties', { properties: value }]);
      for (const name of ['$set', '$set_once']) await rejected(posthog, ['properties', { [name]: value }]);
      await rejected(posthog, ['properties', { properties: { $groups: value } }]);
      const group = { $group_type: 'a', $group_key: 'b', $group_set: value };
      await rejected(posthog, ['properties', { event: '$groupidentify', properties: group }]);
    }
  },
  '`$unset` that is neither a list of names nor an object': async () => {
    for (const $unset of ['plan', 7, [1]]) await rejected(posthog, ['properties', { $unset }]);
    const removed = [await posthog({ $unset: ['plan'] }), await posthog({ $unset: { plan: '' } })];
    for (const { changes } of removed) expect(changes).toMatchObject([{ property: 'plan' }]);
  },
  'more than 256 KiB, 32 levels, 10,000 values or 1,000 changes in an event': async () => {
    await rejected(
      posthog,
      ['too_large', { properties: { text: long(LIMITS.callBytesMax) } }],
      ['properties', { properties: nested(33) }],
      ['malformed', { properties: { list: Array(10_001).fill(0) } }],
      ['properties', { $set: members(1_001) }],
    );
    await taken(posthog, { properties: nested(32) }, {});
    await taken(posthog, { $set: members(1_000) }, {});
  },
  'numbers beyond 64-bit floats, such as `1e999`': async () => {
    await rejected(posthog, ['identifier', '{"event":"e","distinct_id":1e999}']);
    await rejected(posthog, ['properties', '{"event":"e","distinct_id":"a","properties":{"n":1e999}}']);
  },
};

const trenchOptions = { propertiesMax: 1_000, eventBytesMax: LIMITS.callBytesMax, now: () => NOW };

/** What trench-api makes of an event, and what ingest-api stores of that. @throws {InvalidCall} */
async function trench(given: Row | string): Promise<Outcome> {
  const event = typeof given === 'string' ? parseExactJson(given) : { event: 'e', userId: 'ada', ...given };
  return await readBody('batch', `{"batch":[${eventCall(event, trenchOptions).json}]}`);
}

async function refused(...events: readonly (Row | string)[]): Promise<void> {
  for (const event of events) await expect(trench(event), JSON.stringify(event)).rejects.toThrow(InvalidCall);
}

const OF_TRENCH: Readonly<Record<string, Check>> = {
  '`null`, an empty identifier, an empty `timestamp`': async () => {
    const absent = { groupId: '', anonymousId: null, instanceId: null, timestamp: '', properties: null };
    const { events } = await taken(trench, absent, { user_id: 'ada', timestamp: NOW });
    for (const name of ['group_id', 'anonymous_id', 'instance_id', 'properties']) {
      expect(events[0]).not.toHaveProperty(name);
    }
  },
  'identifiers and names that are numbers or booleans': async () => {
    await taken(trench, { userId: 7, groupId: true, event: 5 }, { user_id: '7', group_id: 'true', event: '5' });
  },
  '`[]` as `properties`, `context`, `traits` (PHP)': async () => {
    await taken(
      trench,
      { type: 'identify', properties: [], context: [], traits: [] },
      { user_id: 'ada', properties: {} },
    );
  },
  'events without a type': async () => {
    // `track` is the default of the column.
    expect((await taken(trench, { type: undefined }, { event: 'e' })).events[0]).not.toHaveProperty('type');
  },
  'events of nobody': async () => {
    const { events } = await trench({ userId: undefined });
    expect(events[0]?.['anonymous_id']).toBe(events[0]?.['uuid']);
    expect(eventCall({ event: 'e' }, trenchOptions).shown).not.toHaveProperty('anonymousId');
  },
  '`uuid`': async () => {
    expect(uuidOf(await trench({ uuid: UUID }))).not.toBe(UUID);
  },
  'a `messageId`': async () => {
    await taken(trench, { messageId: UUID }, { uuid: UUID });
    expect(uuidOf(await trench({ messageId: 'm' }))).toBe(uuidOf(await trench({ messageId: 'm' })));
  },
  '`properties.$set` of `identify` and `group` without `traits`': async () => {
    const properties = { $set: { plan: 'pro' } };
    for (const event of [
      { type: 'identify', properties },
      { type: 'group', groupId: 'acme', properties },
    ]) {
      expect((await trench(event)).changes).toMatchObject([{ property: 'plan' }]);
    }
  },
  'times that are numbers, or their digits': async () => {
    for (const timestamp of [YESTERDAY, YESTERDAY / 1_000, String(YESTERDAY)]) {
      await taken(trench, { timestamp }, { timestamp: YESTERDAY });
    }
  },
  'times that cannot be read, or before 2000': async () => {
    for (const timestamp of UNREADABLE) {
      const { events } = await taken(trench, { timestamp }, { context: { sentTimestamp: timestamp } });
      // The uuid has the time of receipt.
      expect(events[0]?.['timestamp']).toBe(uuidV7TimeMs(String(events[0]?.['uuid'])));
    }
  },
  'times more than a day ahead': async () =>
    refused({ timestamp: NEXT_WEEK }, { timestamp: NEXT_WEEK, sentAt: NEXT_WEEK }),
  'events of another type, and `track` without a name': async () =>
    refused({ type: 'alias' }, { event: '' }, { event: null }),
  'objects as identifiers or names; more than 512 and 200 characters': async () =>
    refused({ userId: {} }, { groupId: long(513) }, { event: {} }, { event: long(201) }),
  'texts, numbers and other arrays as `properties`, `context`, `traits`': async () => {
    for (const value of ['x', 7, [1]])
      await refused({ properties: value }, { context: value }, { type: 'identify', traits: value });
  },
  'more than 256 KiB, 32 levels or 1,000 traits in an event': async () =>
    refused(
      { properties: { text: long(LIMITS.callBytesMax) } },
      { properties: nested(33) },
      { type: 'identify', traits: members(1_001) },
    ),
  'numbers beyond 64-bit floats, such as `1e999`': async () =>
    refused('{"event":"e","userId":1e999}', '{"event":"e","userId":"a","properties":{"n":1e999}}'),
  'more than 10,000 values in an event': async () =>
    expect((await trench({ properties: { list: Array(10_001).fill(0) } })).reasons).toEqual(['malformed']),
};

const ofTypes = (other: string): Readonly<Record<string, Check>> => ({
  [`calls of another type${other}, without a name or without an identifier`]: async () =>
    rejected(segment, ['type', { type: 'merge' }], ['name', { event: '' }], ['identifier', { userId: null }]),
});

const GUIDES: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  'from-segment.md': {
    ...OF_SEGMENT,
    ...ofTypes(''),
    '`integrations`, `_metadata`, `sentAt`, `writeKey`': async () =>
      notStored(segment, 'integrations', '_metadata', 'sentAt', 'writeKey'),
  },
  'from-rudderstack.md': {
    ...OF_SEGMENT,
    ...ofTypes(', such as `merge`'),
    '`integrations`, `sentAt`, `channel`, `rudderId`, `request_ip`': async () =>
      notStored(segment, 'integrations', 'sentAt', 'channel', 'rudderId', 'request_ip'),
  },
  'from-posthog.md': OF_POSTHOG,
  'from-trench.md': OF_TRENCH,
};

describe.each(Object.entries(GUIDES))('%s', (guide, checks) => {
  test('has a row for each check, and no other', async () => {
    const text = await readFile(new URL(`../../docs/guide/migrate/${guide}`, import.meta.url), 'utf8');
    const [, section = ''] = text.split('\n## Taken, changed, rejected\n');
    const table = section.split('\n## ')[0] ?? '';
    const rows = [...table.matchAll(/^\| (.*?) +\| .* \|$/gm)].map(([, first = '']) => first).slice(2);
    expect(rows.toSorted()).toEqual(Object.keys(checks).toSorted());
  });

  test.each(Object.entries(checks))('%s', async (_row, check) => {
    await check();
  });
});
