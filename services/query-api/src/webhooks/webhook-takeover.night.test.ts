import { sleep } from '@sluice/shared/base/retry';
import { createDatabase, type TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { gateOf } from '../testing/insert-gate.ts';
import { metric } from '../testing/load.ts';
import { anEvent } from '../testing/query-service.ts';
import { someEvents } from '../testing/streams.ts';
import { manage, Receiver, startWebhooks } from '../testing/webhooks.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase(inject('clickhouseUrl'));
});
afterAll(() => database.release());

test('a replay counts also when its position is stored late: nobody claims the webhook before', async () => {
  const gate = gateOf('webhook_positions');
  await using api = await startWebhooks(database, { WEBHOOK_DELIVERY: 'false', WEBHOOK_LEASE_MS: '60000' }, gate.wrap);
  await using delivering = await startWebhooks(database);
  await using receiver = await Receiver.start();
  const { body } = await manage(api, 'POST', '/webhooks', { url: receiver.url });
  const event = anEvent({ receivedAtUs: Date.UTC(2026, 2, 2) * 1_000 });
  await delivering.store('a', [event]);
  await eventually(() => receiver.uuids).toEqual([event.uuid]);
  gate.close();
  const replayed = manage(api, 'POST', `/webhooks/${body.id}/replay?from=2026-03-02`);
  await eventually(() => metric(delivering, 'sluice_webhooks_held')).toBe(0);
  // Long enough for an instance to claim it.
  await sleep(5_000);
  expect(await metric(delivering, 'sluice_webhooks_held')).toBe(0);
  gate.open();
  expect((await replayed).status).toBe(200);
  await eventually(() => receiver.uuids).toEqual([event.uuid, event.uuid]);
  await manage(api, 'DELETE', `/webhooks/${body.id}`);
});

test('a replay whose position could not be stored within its lease says so', async () => {
  const gate = gateOf('webhook_positions');
  await using api = await startWebhooks(database, { WEBHOOK_DELIVERY: 'false', WEBHOOK_LEASE_MS: '1000' }, gate.wrap);
  await using delivering = await startWebhooks(database);
  await using receiver = await Receiver.start();
  const { body } = await manage(api, 'POST', '/webhooks', { url: receiver.url });
  await eventually(() => metric(delivering, 'sluice_webhooks_held')).toBe(1);
  gate.close();
  const newestEpoch = async () => {
    const result = await delivering.clickHouse.query({
      query: 'SELECT max(epoch) FROM webhook_leases WHERE webhook_id = {id:UUID}',
      ...{ query_params: { id: body.id }, format: 'JSONCompactEachRow' },
    });
    return (await result.json<[number]>())[0]?.[0] ?? 0;
  };
  const before = await newestEpoch();
  const replayed = manage(api, 'POST', `/webhooks/${body.id}/replay?from=2026-03-02`);
  // The replay claims an epoch, and once its lease is over, the other one claims the next.
  await eventually(newestEpoch).toBeGreaterThanOrEqual(before + 2);
  gate.open();
  expect(await replayed).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
  await manage(api, 'DELETE', `/webhooks/${body.id}`);
});

test('the log has the last 100 attempts, also of more', async () => {
  await using query = await startWebhooks(database);
  await using receiver = await Receiver.start();
  const { body } = await manage(query, 'POST', '/webhooks', { url: receiver.url });
  await query.store('a', someEvents(250));
  await eventually(() => receiver.received.length).toBe(250);
  const ids = async () => {
    const { deliveries } = (await manage(query, 'GET', `/webhooks/${body.id}/deliveries`)).body;
    return (deliveries as { id: string }[]).map(({ id }) => id);
  };
  await eventually(async () => [...(await ids())].sort()).toEqual([...receiver.ids.slice(150)].sort());
  await manage(query, 'DELETE', `/webhooks/${body.id}`);
});

test('an instance that ClickHouse answers late delivers nothing after its lease: another one goes on, and nothing comes twice', async () => {
  const leaseMs = 6_000;
  const gate = gateOf('webhook_leases');
  await using slow = await startWebhooks(database, { WEBHOOK_LEASE_MS: String(leaseMs) }, gate.wrap);
  await using receiver = await Receiver.start();
  const { body } = await manage(slow, 'POST', '/webhooks', { url: receiver.url });
  const events = someEvents(3);
  const uuids = events.map(({ uuid }) => uuid);
  const store = (index: number) => slow.store('a', events.slice(index, index + 1));
  await store(0);
  await eventually(() => receiver.uuids).toEqual(uuids.slice(0, 1));
  // One renewal is in force, and its instance learns of it only when half of the time is over, before the lease of the renewal before ends.
  gate.close('responses');
  await eventually(gate.held).toBe(1);
  await sleep(leaseMs / 2);
  gate.open();
  gate.close();
  await using other = await startWebhooks(database, { WEBHOOK_LEASE_MS: '60000' });
  await eventually(() => metric(other, 'sluice_webhooks_held')).toBe(1);
  await store(1);
  await eventually(() => receiver.uuids).toEqual(uuids.slice(0, 2));
  await eventually(() => metric(slow, 'sluice_webhooks_held')).toBe(0);
  expect(receiver.uuids).toEqual(uuids.slice(0, 2));
  // What was held comes late, and takes nothing back.
  gate.open();
  await store(2);
  await eventually(() => [...new Set(receiver.uuids)]).toEqual(uuids);
  await manage(other, 'DELETE', `/webhooks/${body.id}`);
});
