import { eventually } from '@sluice/shared/testing/eventually';
import { beforeAll, expect, test } from 'vitest';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;

beforeAll(async () => {
  pipeline = await takeTenant('visitors');
});

async function send(batch: readonly object[]): Promise<void> {
  expect((await pipeline.submit({ batch }, { path: '/v1/batch' })).status).toBe(200);
}

async function remove(query: string): Promise<void> {
  const url = `${pipeline.services['ingest-api'].url}/v1/users?${query}`;
  const response = await fetch(url, { method: 'DELETE', headers: { authorization: `Bearer ${pipeline.key}` } });
  expect(response.status).toBe(202);
}

const names = async () => {
  const { results } = (await pipeline.get<{ results: { event: string }[] }>('/events?limit=100')).body;
  return results.map(({ event }) => event).sort();
};

test('what somebody did before the login is deleted with the anonymous id, and the rest with the user', async () => {
  const visitor = { type: 'track', anonymousId: 'device', context: { ip: '192.0.2.7' } };
  await send([
    { ...visitor, event: 'before', messageId: 'v1' },
    { type: 'identify', anonymousId: 'device', userId: 'jane', messageId: 'v2' },
    { ...visitor, event: 'after', userId: 'jane', messageId: 'v3' },
    { ...visitor, event: 'of another', anonymousId: 'other', messageId: 'v4' },
    // Rejected: it has no name.
    { ...visitor, messageId: 'v5' },
  ]);
  await pipeline.settled(4);
  await remove('anonymousId=device');
  await eventually(names).toEqual(['after', 'identify', 'of another']);
  await remove('foreignId=jane');
  await eventually(names).toEqual(['of another']);
  // Sent again, and something new.
  await send([
    { ...visitor, event: 'before', messageId: 'v1' },
    { ...visitor, event: 'back', messageId: 'v6' },
  ]);
  await eventually(names).toEqual(['back', 'before', 'of another']);
});
