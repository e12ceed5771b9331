import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type QueryService, startQuery } from '../testing/query-service.ts';
import { aWebhook } from '../testing/webhooks.ts';
import type { WebhookProgress } from './webhook.ts';
import { WebhookLeases } from './webhook-leases.ts';
import { WebhookPositions } from './webhook-positions.ts';
import { WebhookRegister } from './webhook-register.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

const leasesOf = (holder: string, leaseMs = 600_000) => new WebhookLeases(query.clickHouse, holder, leaseMs);

test('of several instances that claim an epoch at once, one at most has won, and it does not lose it to the others', async () => {
  let won = 0;
  for (let round = 0; round < 10; round += 1) {
    const webhook = randomUUID();
    const claim = { webhook, epoch: 1 };
    const outcomes = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (holder) => {
        const leases = leasesOf(holder);
        await leases.claim([claim]);
        return leases.hasWon(claim, (await leases.newest([webhook])).get(webhook));
      }),
    );
    expect(outcomes.filter(Boolean).length).toBeLessThanOrEqual(1);
    won += outcomes.filter(Boolean).length;
    expect((await leasesOf('e').newest([webhook])).get(webhook)).toMatchObject({ epoch: 1, isHeld: true });
  }
  expect(won).toBeLessThanOrEqual(10);
});

test('a webhook that was taken is not free before it is released, and the lease of its holder ends', async () => {
  const [webhook, holder, other] = [randomUUID(), leasesOf('holder'), leasesOf('other')];
  const own = { webhook, epoch: 1 };
  await holder.claim([own]);
  const taken = await other.take(webhook);
  const newest = async () => (await other.newest([webhook])).get(webhook);
  expect(await newest()).toMatchObject({ epoch: taken.epoch, isHeld: true, isOlderHeld: true });
  // Not even for deliveries of its own instance.
  expect(other.hasWon({ webhook, epoch: taken.epoch }, await newest())).toBe(false);
  let isAlone = false;
  const alone = taken.untilAlone().finally(() => {
    isAlone = true;
  });
  await newest();
  expect(isAlone).toBe(false);
  await holder.release([own]);
  await alone;
  expect(await newest()).toMatchObject({ epoch: 2, isHeld: true, isOlderHeld: false });
  expect(await taken.isNewest()).toBe(true);
  await taken.release();
  expect(await newest()).toMatchObject({ epoch: 2, isHeld: false, isOlderHeld: false });
  await holder.claim([{ webhook, epoch: 3 }]);
  expect(await taken.isNewest()).toBe(false);
});

test('a lease ends by itself, and an instance that stops gives up its own at once', async () => {
  const [webhook, leases] = [randomUUID(), leasesOf('short', 1)];
  await leases.record([{ webhook, epoch: 3 }]);
  await eventually(async () => (await leases.newest([webhook])).get(webhook)).toMatchObject({
    epoch: 3,
    isHeld: false,
  });
  const long = leasesOf('long');
  await long.record([]);
  expect(await long.instances()).toContain('long');
  await long.release([], true);
  expect(await long.instances()).not.toContain('long');
});

test('the late position of an instance that lost its lease does not count', async () => {
  const id = randomUUID();
  const register = new WebhookRegister(query.clickHouse);
  await register.save(aWebhook(id));
  const progressOf = (epoch: number, position: string): WebhookProgress => ({
    ...{ epoch, position, sendingTo: '', attempts: 0, failingMs: 0, logLines: 0 },
  });
  const [older, newer] = [1, 2].map(() => new WebhookPositions(query.clickHouse, createLogger('test', 'silent')));
  await older?.store(id, progressOf(1, 'first'));
  await newer?.store(id, progressOf(2, 'second'));
  for (const late of ['third', 'fourth']) await older?.store(id, progressOf(1, late));
  expect((await register.find('a', id))?.progress).toMatchObject({ epoch: 2, position: 'second' });
  await newer?.store(id, progressOf(2, 'fifth'));
  expect((await register.find('a', id))?.progress).toMatchObject({ epoch: 2, position: 'fifth' });
});

test('an instance that keeps its leases at one replica sees that others keep theirs at another one', async () => {
  const at = (holder: string, replica?: string) => new WebhookLeases(query.clickHouse, holder, 600_000, replica);
  const [one, same, other] = [at('at one', 'r1'), at('also at one', 'r1'), at('at another', 'r2')];
  for (const leases of [one, same]) await leases.record([]);
  const ofReplicas = async () => (await one.instances()).filter((instance) => instance.includes('@'));
  expect(one.othersAt(await ofReplicas())).toEqual([]);
  await other.record([]);
  expect(one.othersAt(await ofReplicas())).toEqual(['r2']);
  expect(other.othersAt(await ofReplicas())).toEqual(['r1']);
  for (const leases of [one, same, other]) await leases.release([], true);
});
