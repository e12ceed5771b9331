import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@sluice/shared/testing/until';
import { beforeAll, expect, test } from 'vitest';
import type { EntityRecord } from '../kit/records.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;

beforeAll(async () => {
  pipeline = await takeTenant('posthog');
});

async function send(user: string, ...events: readonly object[]): Promise<void> {
  await post(user, ...events);
  await pipeline.drained();
}

async function post(user: string, ...events: readonly object[]): Promise<void> {
  const batch = events.map((event) => ({ event: '$set', distinct_id: user, uuid: randomUUID(), ...event }));
  const { status } = await pipeline.submit({ api_key: pipeline.key, batch }, { path: '/batch/' });
  expect(status).toBe(200);
}

async function propertiesOf(user: string): Promise<unknown> {
  return (await pipeline.get<EntityRecord>(`/users/${user}`)).body.properties;
}

test('of what was set once the first counts, and only while nothing else sets or removes it', async () => {
  await send('ada', { $set_once: { a: 1, b: 1 } }, { $set_once: { a: 2 } }, { $set: { b: 2 } });
  expect(await propertiesOf('ada')).toEqual({ a: 1, b: 2 });
  await send('ada', { $set_once: { a: 3, b: 3 } });
  await send('ada', { $unset: ['a'] }, { $set_once: { a: 4 } });
  expect(await propertiesOf('ada')).toEqual({ b: 2 });
  await send('ada', { $set: { a: 5 } });
  expect(await propertiesOf('ada')).toEqual({ a: 5, b: 2 });
});

test('a filter finds users by what was set once', async () => {
  await send('bob', { $set_once: { from: 'an ad' } });
  const { body } = await pipeline.get<{ results: EntityRecord[] }>('/users?properties.from=an%20ad');
  expect(body.results).toMatchObject([{ foreignId: 'bob', properties: { from: 'an ad' } }]);
});

test('a deleted user has nothing that was set once, and what is set once after the deletion shows', async () => {
  await send('eve', { $set_once: { before: 1 } });
  await pipeline.deleteUser('eve');
  await until('the user to be gone', async () => (await pipeline.get('/users/eve')).status === 404);
  await send('eve', { $set_once: { after: 2 } });
  expect(await propertiesOf('eve')).toEqual({ after: 2 });
});

test('what was set once after the time of a deletion shows, whatever was set before it', async () => {
  const tick = () => delay(3);
  for (const isOneBatch of [false, true]) {
    const user = `back ${isOneBatch}`;
    const drained = () => (isOneBatch ? undefined : pipeline.drained());
    await post(user, { $set: { p: 'old', q: 'old' } }, { $set_once: { r: 'old' } });
    await drained();
    await tick();
    const before = new Date().toISOString();
    await tick();
    await post(user, { $set_once: { p: 'new', r: 'new' } }, { $unset: ['q'] });
    await drained();
    const path = `/v1/users?foreignId=${encodeURIComponent(user)}&before=${before}`;
    const { status } = await pipeline.submit('', { path, method: 'DELETE' });
    expect(status).toBe(202);
    await pipeline.drained();
    const read = () => pipeline.get<EntityRecord>(`/users/${encodeURIComponent(user)}`);
    expect(await read()).toMatchObject({ status: 200, body: { properties: { p: 'new', r: 'new' } } });
  }
});
