import { anEvent } from '@sluice/query-api/testing/query-service';
import { accept, uuidsOf } from '@sluice/query-api/testing/webhooks';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { expectSameCopy, heldBy, startWebhookInstances } from '../kit/webhook-instances.ts';

test('an instance that is killed after the receiver took one event: the copy has the same event and the same webhook-id', async () => {
  await expectSameCopy(false);
});

test('an instance that was frozen while it delivered changes nothing when it wakes up', async () => {
  await using system = await startWebhookInstances();
  const { instances, receiver } = system;
  const webhook = await system.subscribe(instances[0]);
  const holder = await system.holder();
  const epoch = await system.epoch(webhook);
  const [first, ...others] = Array.from({ length: 5 }, () => anEvent());
  if (!first) throw new Error('no event');
  const uuids = others.map(({ uuid }) => uuid);
  // It is frozen while it waits for the response, which it gets only when it wakes up.
  let answer: (() => void) | undefined;
  receiver.behaviour = (received, response) => {
    if (answer) return accept(received, response);
    answer = () => accept(received, response);
    holder.freeze();
  };
  await system.store([first]);
  await eventually(() => answer !== undefined).toBe(true);
  for (const event of others) await system.store([event]);
  await eventually(() => receiver.uuids).toEqual([first.uuid, first.uuid, ...uuids]);
  expect(receiver.ids[1]).toBe(receiver.ids[0]);
  // What is delivered after the stored position is delivered again when an instance is killed.
  await eventually(() => system.storedAttempts(webhook)).toBe(1 + others.length);
  expect(await system.epoch(webhook)).toBeGreaterThan(epoch);
  answer?.();
  holder.thaw();
  // It learns that the webhook is not its own any more, and the position of the other one stands.
  await eventually(() => heldBy(holder)).toBe(0);
  const last = anEvent();
  await system.store([last]);
  await eventually(() => receiver.uuids.at(-1)).toBe(last.uuid);
  for (const instance of instances) await instance.kill9();
  const again = instances[0].again();
  try {
    await again.ready();
    await eventually(() => heldBy(again)).toBe(1);
    const newest = anEvent();
    await system.store([newest]);
    await eventually(() => receiver.uuids.at(-1)).toBe(newest.uuid);
    expect(receiver.uuids.slice(2 + uuids.length)).toEqual(expect.arrayContaining([last.uuid, newest.uuid]));
    expect(receiver.received.flatMap(({ body }) => uuidsOf(body)).filter((uuid) => uuid === uuids[0])).toHaveLength(1);
  } finally {
    await again.kill9();
  }
});
