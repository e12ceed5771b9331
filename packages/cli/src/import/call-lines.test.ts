import { expect, test } from 'vitest';
import { FORMATS, type FormatName } from './formats.ts';

function read(format: FormatName, line: object | string, number = 1) {
  return FORMATS[format].readLine(Buffer.from(typeof line === 'string' ? line : JSON.stringify(line)), number);
}

/** The call that is sent for a line. */
function sent(format: FormatName, line: object | string, number = 1): Record<string, unknown> {
  const content = read(format, line, number);
  if (content.kind !== 'line') throw new Error(JSON.stringify(content));
  return JSON.parse(content.body.toString()) as Record<string, unknown>;
}

function reason(format: FormatName, line: object | string): string {
  const content = read(format, line);
  return content.kind === 'refused' ? content.reason : content.kind;
}

const call = { type: 'track', event: 'e', userId: 'jane', messageId: 'm1' };

const ORIGINAL = '2026-03-01T12:00:00.500Z';
const SENT = '2026-03-01T12:00:02.250Z';
const RECEIVED = '2026-03-01T12:00:09.000Z';
/** RECEIVED - (SENT - ORIGINAL) */
const CORRECTED = '2026-03-01T12:00:07.250Z';
const archived = { originalTimestamp: ORIGINAL, timestamp: CORRECTED, sentAt: SENT, receivedAt: RECEIVED };

test.each([
  ['what the client sent, where the archive corrected it', archived, ORIGINAL],
  ['the same in another zone', { ...archived, originalTimestamp: '2026-03-01T14:00:00.500999+02:00' }, ORIGINAL],
  ['the same, where the archive rounded', { ...archived, timestamp: '2026-03-01T12:00:07.251Z' }, ORIGINAL],
  [
    "the client's timestamp, where the archive has no other time of the client",
    { ...archived, timestamp: '2026-02-28T08:00:00.000Z', originalTimestamp: RECEIVED },
    '2026-02-28T08:00:00.000Z',
  ],
  [
    "the client's timestamp, where it sent both",
    { ...archived, timestamp: '2026-03-01T12:00:00.400Z' },
    '2026-03-01T12:00:00.400Z',
  ],
  ['timestamp without any other', { timestamp: CORRECTED }, CORRECTED],
  ['originalTimestamp without any other', { originalTimestamp: ORIGINAL }, ORIGINAL],
  ['the time of receipt without any other', { receivedAt: RECEIVED, sentAt: ORIGINAL }, RECEIVED],
  [
    'the corrected one, when the clock of the client was more than a day ahead',
    { ...archived, originalTimestamp: '2026-03-02T12:00:09.001Z', sentAt: '2026-03-02T12:00:10.751Z' },
    CORRECTED,
  ],
  [
    'what the client sent, when its clock was less than a day ahead',
    { ...archived, originalTimestamp: '2026-03-02T12:00:09.000Z', sentAt: '2026-03-02T12:00:10.750Z' },
    '2026-03-02T12:00:09.000Z',
  ],
  [
    'the corrected one, when the clock of the client was not set',
    { ...archived, originalTimestamp: '1970-01-01T00:00:09.000Z', sentAt: '1970-01-01T00:00:10.750Z' },
    CORRECTED,
  ],
  [
    'the time of receipt, when both others are days ahead of it',
    { timestamp: '2031-01-01', receivedAt: RECEIVED },
    RECEIVED,
  ],
  ['what can be read', { originalTimestamp: 'yesterday', timestamp: 1_772_366_407, receivedAt: RECEIVED }, RECEIVED],
])('the time of an archived call is %s', (_name, times, timestamp) => {
  expect(sent('segment', { ...call, ...times })['timestamp']).toBe(timestamp);
});

// The service would stamp a call without a time with the time of the import, each time anew, and reject one of the future.
test.each([
  [{ sentAt: ORIGINAL }],
  [{ timestamp: '2999-01-01T00:00:00.000Z' }],
  [{ timestamp: '2999-01-01T00:00:00.000Z', receivedAt: '2999-01-01T00:00:00.000Z' }],
  [{ timestamp: '1970-01-01T00:00:00.000Z' }],
])('an archived call with %j is refused: nobody knows when it was', (times) => {
  expect(reason('segment', { ...call, ...times })).toBe(
    'has no usable time: timestamp, originalTimestamp or receivedAt is needed',
  );
});

test('an archived call is sent with all that it holds, byte for byte', () => {
  const text =
    ` {"type":"track", "event":"e","anonymousId":"a\\u00e9","messageId":"m1","timestamp":"${CORRECTED}","writeKey" : null,` +
    `"properties":{"id":1729384756102938475,"x":1.10,"n\\"ame":"é","timestamp":"then"},"__proto__":{"a":1}} `;
  const content = read('segment', text);
  if (content.kind !== 'line') throw new Error('it was not read');
  expect(content.body.toString()).toBe(text.trimStart());
  expect(content.events).toBe(1);
});

test('a call without a messageId gets one that its line and number decide', () => {
  const { messageId, ...without } = { ...call, receivedAt: CORRECTED };
  const first = sent('segment', without, 1)['messageId'];
  expect(sent('segment', without, 1)).toEqual({ ...without, messageId: first, timestamp: CORRECTED });
  expect(first).toMatch(/^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  for (const absent of [undefined, null, '']) {
    const again = sent('segment', { ...without, messageId: absent }, 1)['messageId'];
    if (absent === undefined) expect(again).toBe(first);
    expect(again).toMatch(/^[\da-f]{8}-/);
  }
  expect(sent('segment', without, 2)['messageId']).not.toBe(first);
  expect(sent('segment', { ...without, messageId })['messageId']).toBe('m1');
});

test.each([
  ['\n', 'blank'],
  ['nonsense', 'is not JSON'],
  ['[]', 'is not a JSON object'],
])('of the line %j nothing is sent', (line, expected) => {
  for (const format of ['segment', 'posthog', 'trench'] as const) expect(reason(format, line)).toBe(expected);
});

/** A row as ClickHouse 24 prints one of Trench's. */
const row = {
  uuid: '25f7c712-dd86-4db0-89a8-d07d11b73e57',
  type: 'track',
  event: 'ConnectedAccount',
  user_id: 'jane',
  group_id: '',
  anonymous_id: '',
  instance_id: '',
  properties: '{"totalAccounts":4,"id":1729384756102938475}',
  traits: '',
  context: '',
  timestamp: '2024-10-22 19:34:56.000000',
  parsed_at: '2024-10-22 19:34:59.530000',
};

test('a row of Trench becomes a track call', () => {
  const content = read('trench', row);
  if (content.kind !== 'line') throw new Error('it was not read');
  expect(content.body.toString()).toBe(
    '{"type":"track","messageId":"25f7c712-dd86-4db0-89a8-d07d11b73e57","event":"ConnectedAccount","userId":"jane",' +
      '"properties":{"totalAccounts":4,"id":1729384756102938475},"timestamp":"2024-10-22T19:34:56.000Z"}',
  );
  expect(content.orderKey).toBeUndefined();
});

test('identifiers and JSON columns of a row are kept, as text or as JSON', () => {
  const identifiers = { user_id: '', group_id: 'acme', anonymous_id: 'a-1', instance_id: 'i-1' };
  const json = { properties: { a: [1] }, traits: '{"b":2}', context: '{"ip":"192.0.2.1"}' };
  const { messageId, timestamp, event, ...call } = sent('trench', { ...row, ...identifiers, ...json, type: '' });
  expect(call).toEqual({
    type: 'track',
    groupId: 'acme',
    anonymousId: 'a-1',
    instanceId: 'i-1',
    properties: { a: [1] },
    traits: { b: 2 },
    context: { ip: '192.0.2.1' },
  });
});

test.each([
  ['traits', { traits: '{"plan":"pro"}', properties: '{"$set":{"plan":"free"}}' }, { plan: 'pro' }],
  ['properties.$set', { properties: '{"$set":{"plan":"pro"},"$set_once":{"a":1}}' }, { plan: 'pro' }],
  ['properties.$set, with empty traits', { traits: '{}', properties: '{"$set":{"plan":"pro"}}' }, { plan: 'pro' }],
  ['nothing', { properties: '{"$set":"pro"}' }, undefined],
])('an identify or group row sets %s', (_name, columns, traits) => {
  expect(sent('trench', { ...row, type: 'identify', ...columns })['traits']).toEqual(traits);
  expect(sent('trench', { ...row, type: 'group', group_id: 'acme', ...columns })['traits']).toEqual(traits);
});

test('the properties of another row are no traits', () => {
  expect(sent('trench', { ...row, properties: '{"$set":{"plan":"pro"}}' })['traits']).toBeUndefined();
});

test('a page row is named after its event', () => {
  expect(sent('trench', { ...row, type: 'page', event: 'Pricing' })).toMatchObject({ type: 'page', name: 'Pricing' });
});

test('a row without user, group and anonymous id is of a person of its own', () => {
  const anonymous = { ...row, user_id: '', instance_id: 'i-1' };
  expect(sent('trench', anonymous)).toMatchObject({ anonymousId: row.uuid, instanceId: 'i-1' });
  expect(sent('trench', row)['anonymousId']).toBeUndefined();
});

test.each([
  ['of the row', {}, '2024-10-22T19:34:56.000Z'],
  ['in ISO 8601', { timestamp: '2024-10-22T19:34:56.123456Z' }, '2024-10-22T19:34:56.123Z'],
  ['of its arrival, when it is days ahead', { timestamp: '2034-10-22 00:00:00.000000' }, '2024-10-22T19:34:59.530Z'],
  [
    'of its arrival, when Trench could not read it',
    { timestamp: '1970-01-01 00:00:00.000000' },
    '2024-10-22T19:34:59.530Z',
  ],
])('the time of a row is that %s', (_name, columns, timestamp) => {
  expect(sent('trench', { ...row, ...columns })['timestamp']).toBe(timestamp);
});

test.each([
  [{ uuid: undefined }, 'has no uuid: is it a row of the table events?'],
  [{ timestamp: 1_729_625_696, parsed_at: undefined }, 'has no usable timestamp, such as "2024-10-22 19:34:56.000000"'],
  [{ properties: 'plan=pro' }, 'properties is not a JSON object'],
  [{ context: '[1]' }, 'context is not a JSON object'],
  [{ traits: 7 }, 'traits is not a JSON object'],
])('a row with %j is refused', (columns, expected) => {
  expect(reason('trench', { ...row, ...columns })).toBe(expected);
});

test.each([
  ['segment', { ...call, timestamp: CORRECTED }, undefined],
  ['segment', { ...call, type: 'identify', timestamp: CORRECTED }, '["user","jane"]'],
  ['segment', { ...call, type: 'identify', userId: 12, timestamp: CORRECTED }, '["user","12"]'],
  ['segment', { type: 'identify', anonymousId: 'a', timestamp: CORRECTED }, undefined],
  ['segment', { ...call, type: 'group', groupId: 'acme', timestamp: CORRECTED }, '["organization","acme"]'],
  [
    'segment',
    { ...call, type: 'group', context: { groupId: 'acme' }, timestamp: CORRECTED },
    '["organization","acme"]',
  ],
  ['trench', { ...row, type: 'identify' }, '["user","jane"]'],
  ['trench', { ...row, type: 'group', group_id: 'acme' }, '["organization","acme"]'],
] as const)('%s: what %j changes decides the order', (format, line, orderKey) => {
  expect(read(format, line)).toMatchObject({ kind: 'line', orderKey });
});

/** A line as PostHog's batch export writes it. */
const exported = {
  uuid: '0195512a-3c4d-7e5f-8a6b-0c1d2e3f4a5b',
  event: '$pageview',
  distinct_id: 'jane',
  team_id: 1,
  timestamp: '2025-03-01T12:00:00.123000+00:00',
  created_at: '2025-03-01T12:00:01+00:00',
  person_id: '7',
  person_properties: { plan: 'pro' },
  elements_chain: '',
};

test.each([
  ['an object', '{"id":1729384756102938475,"$set":{"x":1.10}}'],
  ['its text', JSON.stringify('{"id":1729384756102938475,"$set":{"x":1.10}}')],
])('an exported event of PostHog is sent with its properties, which are %s, digit by digit', (_form, properties) => {
  const line = `${JSON.stringify(exported).slice(0, -1)},"properties":${properties}}`;
  const content = read('posthog', line);
  if (content.kind !== 'line') throw new Error(JSON.stringify(content));
  expect(content.path).toBe('/batch/');
  expect(content.body.toString()).toBe(
    `{"uuid":"${exported.uuid}","event":"$pageview","distinct_id":"jane","timestamp":"2025-03-01T12:00:00.123Z",` +
      '"properties":{"id":1729384756102938475,"$set":{"x":1.10}}}',
  );
  expect(content.orderKey).toBe('["user","jane"]');
});

test('changes of one user or organization are sent in their order, other exported events of PostHog in any', () => {
  const orderKey = (line: object) => {
    const content = read('posthog', { ...exported, ...line });
    return content.kind === 'line' ? content.orderKey : content;
  };
  const group = { $group_type: 'company', $group_key: 'acme', $group_set: {} };
  expect(orderKey({ event: '$groupidentify', properties: group })).toBe(
    orderKey({ event: '$groupidentify', distinct_id: 'other', properties: group }),
  );
  expect(orderKey({ properties: { $set_once: { a: 1 } } })).toBe('["user","jane"]');
  expect(orderKey({ properties: { a: 1 } })).toBeUndefined();
  expect(orderKey({})).toBeUndefined();
});

test.each([
  [{ uuid: null }, 'has no uuid: is it a line of an export of events?'],
  [{ timestamp: 'soon', created_at: null }, 'has no usable timestamp, such as "2025-03-01T12:00:00.000000+00:00"'],
  [{ properties: '[]' }, 'properties is not a JSON object'],
  [{ properties: 7 }, 'properties is not a JSON object'],
])('an exported event of PostHog with %j is refused', (other, expected) => {
  expect(reason('posthog', { ...exported, ...other })).toBe(expected);
});

test('an exported event of PostHog is sent without the API key that it was sent with', () => {
  const properties = { $lib: 'web', token: 'phc_1', n: 1, api_key: 'phc_2' };
  for (const form of [properties, JSON.stringify(properties)]) {
    expect(sent('posthog', { ...exported, properties: form })['properties']).toEqual({ $lib: 'web', n: 1 });
  }
});
