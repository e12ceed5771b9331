import { expect, test } from 'vitest';
import { parseCall } from './call-parser.ts';
import { parsePosthogEvent } from './posthog/posthog-event.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const options = { propertiesMax: 10, now: () => NOW };

function linksOf(form: 'segment' | 'posthog', call: object): string[] {
  const { links } = form === 'posthog' ? parsePosthogEvent(call, options) : parseCall(call, undefined, {}, options);
  return links.map(({ anonymousId, userId }) => `${anonymousId} is ${userId}`);
}

test.each([
  ['identify', { type: 'identify', userId: 'u', anonymousId: 'a' }, ['a is u']],
  ['track with both', { type: 'track', event: 'e', userId: 'u', anonymousId: 'a' }, ['a is u']],
  ['page without a user', { type: 'page', anonymousId: 'a' }, []],
  ['group without an anonymousId', { type: 'group', userId: 'u', groupId: 'g' }, []],
  ['alias', { type: 'alias', userId: 'u', previousId: 'p' }, ['p is u']],
  ['alias of a browser', { type: 'alias', userId: 'u', previousId: 'a', anonymousId: 'a' }, ['a is u']],
  ['alias of three', { type: 'alias', userId: 'u', previousId: 'p', anonymousId: 'a' }, ['a is u', 'p is u']],
])("of a call of Segment's and RudderStack's clients: %s", (_what, call, links) => {
  expect(linksOf('segment', call)).toEqual(links);
});

test.each([
  ['$identify', { event: '$identify', distinct_id: 'u', properties: { $anon_distinct_id: 'a' } }, ['a is u']],
  ['$identify alone', { event: '$identify', distinct_id: 'u' }, []],
  ['an event of a user', { event: 'e', distinct_id: 'u', properties: { $device_id: 'a' } }, []],
  ['an event of a visitor', { event: 'e', distinct_id: 'a', properties: { $device_id: 'a' } }, []],
  [
    'an alias, which names the user here by posthog-node, and there by posthog-python',
    { event: '$create_alias', distinct_id: 'u', properties: { distinct_id: 'u', alias: 'a' } },
    ['a is u', 'u is a'],
  ],
])("of an event of PostHog's clients: %s", (_what, event, links) => {
  expect(linksOf('posthog', event)).toEqual(links);
});
