import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import type { Event } from '../base/base.ts';
import { curlOf } from './event-curl.ts';

const EVENT = {
  ...{ uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002', type: 'track', event: "it's $HOME `id` \\ \n😀" },
  ...{ userId: 'jane', groupId: null, anonymousId: null, instanceId: 'i' },
  ...{ properties: { "o'": 1 }, context: {}, traits: {} },
  ...{ timestamp: '2026-03-01T12:00:00.000Z', receivedAt: '2026-03-01T12:00:00.000Z' },
} satisfies Event;

/** Returns what a shell would hand to curl. */
function argumentsOf(event: Event): string[] {
  const script = curlOf(event, 'http://127.0.0.1:4000').replace(/^curl/, 'printf "%s\\0"');
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
}

function sent(event: Event): unknown[] {
  const [, , url, ...rest] = argumentsOf(event);
  return [url, JSON.parse(rest.at(-1) ?? '')];
}

test('a shell gets the event as it is, whatever its texts hold', () => {
  expect(sent(EVENT)).toEqual([
    'http://127.0.0.1:4000/v1/public/users',
    {
      foreignId: 'jane',
      events: [
        {
          ...{ event: EVENT.event, uuid: EVENT.uuid, timestamp: EVENT.timestamp, instanceId: 'i' },
          ...{ properties: EVENT.properties, context: {}, traits: {} },
        },
      ],
    },
  ]);
});

test('an event of an organization is sent with it, one of nobody or of another type as a call', () => {
  expect(sent({ ...EVENT, groupId: 'acme' })).toEqual([
    'http://127.0.0.1:4000/v1/public/userGroups',
    expect.objectContaining({ foreignUserGroupId: 'acme', foreignUserId: 'jane' }),
  ]);
  const [url, body] = sent({ ...EVENT, userId: null, anonymousId: 'a' });
  expect([url, body]).toEqual([
    'http://127.0.0.1:4000/v1/batch',
    {
      batch: [expect.objectContaining({ type: 'track', event: EVENT.event, anonymousId: 'a', messageId: EVENT.uuid })],
    },
  ]);
  expect(sent({ ...EVENT, type: 'page' })[1]).toEqual({
    batch: [expect.objectContaining({ type: 'page', name: EVENT.event, userId: 'jane' })],
  });
});
