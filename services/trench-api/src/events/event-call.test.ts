import { expect, test } from 'vitest';
import { eventCall } from './event-call.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const options = { propertiesMax: 10, eventBytesMax: 1_000, now: () => NOW };
const callOf = (event: unknown) => JSON.parse(eventCall(event, options).json);
const shownOf = (event: unknown) => eventCall(event, options).shown;

test('an event of nobody gets its uuid as anonymousId, which no response shows', () => {
  const { json, shown } = eventCall({ type: 'track', event: 'a', userId: null, groupId: '' }, options);
  const call = JSON.parse(json);
  expect(call.anonymousId).toBe(call.messageId);
  expect(shown).not.toHaveProperty('anonymousId');
  expect(shown).not.toHaveProperty('userId');
  expect(shown.uuid).toBe(call.messageId);
});

test('events have a uuid of their own, also with the same member uuid, unless they have a messageId', () => {
  const uuid = '123e4567-e89b-42d3-a456-426614174001';
  const event = { event: 'a', userId: 'u', uuid };
  expect(shownOf(event).uuid).not.toBe(uuid);
  expect(shownOf(event).uuid).not.toBe(shownOf(event).uuid);
  expect(shownOf({ ...event, messageId: uuid.toUpperCase() }).uuid).toBe(uuid);
  expect(shownOf({ ...event, messageId: 'm' }).uuid).toBe(shownOf({ ...event, messageId: 'm' }).uuid);
  expect(shownOf({ ...event, messageId: 'm' }).uuid).not.toBe(shownOf({ ...event, messageId: 'n' }).uuid);
});

test('identify and group have the traits that $set has, where they have none', () => {
  const set = { plan: 'pro' };
  const properties = { $set: set, $set_once: {} };
  expect(callOf({ type: 'identify', userId: 'u', properties }).traits).toEqual(set);
  expect(callOf({ type: 'group', groupId: 'g', properties, traits: {} }).traits).toEqual(set);
  expect(callOf({ type: 'identify', userId: 'u', properties, traits: { a: 1 } }).traits).toEqual({ a: 1 });
  expect(callOf({ type: 'track', event: 'e', userId: 'u', properties }).traits).toBeUndefined();
});

test('what is written as PHP and other languages write it is taken', () => {
  const properties = { $set: { plan: 'pro' } };
  expect(callOf({ type: 'identify', userId: 7, properties, traits: [] }).traits).toEqual({ plan: 'pro' });
  expect(shownOf({ event: 'e', userId: true, properties: [], context: [] })).toMatchObject({ userId: 'true' });
  expect(shownOf({ event: 'e', messageId: 'm', timestamp: 'yesterday' }).timestamp).toBe('2026-03-01T12:00:00.000Z');
});

test('the name of a page is that of its event', () => {
  expect(callOf({ type: 'page', userId: 'u', event: '$pageview' }).name).toBe('$pageview');
  expect(shownOf({ type: 'page', userId: 'u' }).event).toBe('page');
});

test('the properties of the response are those that are stored: a page has its name among them', () => {
  const page = {
    type: 'page',
    userId: 'u',
    event: 'Pricing',
    properties: { a: 1, long: JSON.rawJSON('9007199254740993') },
  };
  expect(JSON.stringify(shownOf(page).properties)).toBe('{"name":"Pricing","a":1,"long":9007199254740993}');
  expect(shownOf({ ...page, properties: { name: 'own' } }).properties).toEqual({ name: 'own' });
  expect(shownOf({ type: 'page', userId: 'u', event: 'Pricing' }).properties).toEqual({ name: 'Pricing' });
  expect(shownOf({ event: 'e', userId: 'u' })).not.toHaveProperty('properties');
});

test('the time of the response is the one that is stored', () => {
  expect(shownOf({ event: 'e', timestamp: '2026-01-01T01:00:00.1234+01:00' }).timestamp).toBe(
    '2026-01-01T00:00:00.123Z',
  );
  expect(shownOf({ event: 'e', messageId: 'm' })).toMatchObject({
    timestamp: '2026-03-01T12:00:00.000Z',
    parsedAt: '2026-03-01T12:00:00.000Z',
  });
});

test.each([
  ['an event must be an object', 7],
  ['timestamp must be at most one day from now', { event: 'e', timestamp: '2026-03-03T12:00:00Z' }],
  ['type must be one of: page, track, identify, group', { type: 'alias', userId: 'u' }],
  ['event must be a string', { userId: 'u' }],
  ['userId must be a string', { event: 'e', userId: {} }],
  ['properties must be an object', { event: 'e', properties: [1] }],
  ['traits must be an object', { event: 'e', traits: 'x' }],
  ['groupId is needed in a group call', { type: 'group', userId: 'u' }],
  ['must be at most 1000 bytes', { event: 'e', properties: { a: 'x'.repeat(1_000) } }],
])('%s', (message, event) => {
  expect(() => eventCall(event, options)).toThrow(new RegExp(message, 'i'));
});
