import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { startMirrors } from '../testing/mirrors.ts';
import type { TestApp } from '../testing/query-service.ts';
import { startShards } from '../testing/shards.ts';
import { someEvents } from '../testing/streams.ts';
import { manage, Receiver, WEBHOOKS_ENV } from '../testing/webhooks.ts';

const PATIENT = { READ_LAG_MS_MAX: '60000', READ_STALE_MS_MAX: '600000' } as const;

async function subscribe(service: TestApp, url: string): Promise<string> {
  const { status, body } = await manage(service, 'POST', '/webhooks', { url });
  expect(status).toBe(201);
  return `/webhooks/${body.id}`;
}

test('a webhook goes on at a mirror when the other one cannot be read: nothing is missing, and copies have the same uuids', async () => {
  const service = await startMirrors(inject('clickhouseUrl'), ['a1', 'a2'], { ...WEBHOOKS_ENV, ...PATIENT });
  try {
    await using receiver = await Receiver.start();
    const storeInBoth = async (events: ReturnType<typeof someEvents>) => {
      for (const { store, progress } of service.mirrors) {
        await store('a', events);
        await progress();
      }
    };
    // Blocks of the two have different numbers.
    for (const event of someEvents(3)) await service.a2.store('h', [event]);
    // A server goes on where another one stopped from what it had stored five seconds before.
    const [old] = someEvents(1);
    for (const { store, progress } of service.mirrors) {
      await store('a', old ? [old] : []);
      await progress(0, Date.now() - 60_000);
    }
    await storeInBoth(someEvents(1));
    await subscribe(service, receiver.url);
    const events = someEvents(20);
    const uuids = events.map(({ uuid }) => uuid);
    for (const event of events.slice(0, 10)) await storeInBoth([event]);
    await eventually(() => [...new Set(receiver.uuids)].sort()).toEqual(uuids.slice(0, 10).sort());
    service.a1.behaviour = 'refuses';
    for (const event of events.slice(10)) await storeInBoth([event]);
    await eventually(() => uuids.every((uuid) => receiver.uuids.includes(uuid))).toBe(true);
    // In the order of storage, but for what came again.
    const first = [...new Set(receiver.uuids)].filter((uuid) => uuids.includes(uuid));
    expect(first).toEqual(uuids);
  } finally {
    await service.stop();
  }
});

test('a webhook of servers with ranges gets the events of all, and a replay sends them again', async () => {
  const ranges = { a: { first: 0, last: 31 }, b: { first: 32, last: 47 } };
  const service = await startShards(ranges, {}, WEBHOOKS_ENV);
  try {
    await using receiver = await Receiver.start();
    const path = await subscribe(service, receiver.url);
    const uuids: string[] = [];
    for (let round = 0; round < 5; round += 1) {
      for (const shard of service.shards) {
        const events = someEvents(2, { receivedAtUs: Date.UTC(2026, 2, 1 + round) * 1_000 });
        uuids.push(...events.map(({ uuid }) => uuid));
        await shard.store('a', events);
        await shard.progress();
      }
    }
    await eventually(() => [...receiver.uuids].sort()).toEqual([...uuids].sort());
    const { status } = await manage(service, 'POST', `${path}/replay?from=2026-03-04`);
    expect(status).toBe(200);
    const again = uuids.slice(-8);
    await eventually(() => [...receiver.uuids.slice(uuids.length)].sort()).toEqual([...again].sort());
  } finally {
    await service.stop();
  }
});
