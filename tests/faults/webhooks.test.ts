import { anEvent } from '@sluice/query-api/testing/query-service';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import type { Service } from '../kit/service.ts';
import { expectSameCopy, heldBy, LEASE_MS, startWebhookInstances } from '../kit/webhook-instances.ts';

test('an instance that is killed after the receiver took a part of a batch: the copy has the same events and the same webhook-id', async () => {
  await expectSameCopy(true);
});

test('one instance delivers a webhook at a time, and the other one when it stops', async () => {
  // Nothing waits until it is over.
  await using system = await startWebhookInstances(6 * LEASE_MS);
  const { instances, receiver } = system;
  await system.subscribe(instances[0]);
  const holder = await system.holder();
  const other = instances.find((instance) => instance !== holder) as Service;
  const events = Array.from({ length: 20 }, () => anEvent());
  const uuids = events.map(({ uuid }) => uuid);
  for (const event of events.slice(0, 10)) await system.store([event]);
  await eventually(() => receiver.uuids).toEqual(uuids.slice(0, 10));
  expect(await heldBy(other)).toBe(0);
  expect(await holder.stop()).toBe(0);
  for (const event of events.slice(10)) await system.store([event]);
  await eventually(() => receiver.uuids).toEqual(uuids);
  expect(await heldBy(other)).toBe(1);
});
