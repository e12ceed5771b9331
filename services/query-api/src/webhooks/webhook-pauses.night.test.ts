import { createDatabase, type TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { metric } from '../testing/load.ts';
import { anEvent } from '../testing/query-service.ts';
import { someEvents } from '../testing/streams.ts';
import { accept, manage, pauseIn, Receiver, startWebhooks, subscribe } from '../testing/webhooks.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase(inject('clickhouseUrl'));
});
afterAll(() => database.release());

test('a webhook whose position the database does not have any more is paused, says so, and replay sends what is there', async () => {
  const own = await createDatabase(inject('clickhouseUrl'));
  try {
    await using query = await startWebhooks(own);
    await using receiver = await Receiver.start();
    const path = await subscribe(query, receiver.url);
    for (const event of someEvents(20)) await query.store('a', [event]);
    await eventually(() => receiver.received.length).toBe(20);
    await manage(query, 'PATCH', path, { state: 'paused' });
    await eventually(() => metric(query, 'sluice_webhooks_held')).toBe(0);
    // As after a restore of an older backup: ClickHouse counts its blocks anew.
    await query.clickHouse.command({ query: 'CREATE TABLE anew AS events' });
    await query.clickHouse.command({ query: 'EXCHANGE TABLES anew AND events' });
    const now = Date.now();
    const [old, recent] = [anEvent({ receivedAtUs: 1 }), anEvent({ receivedAtUs: now * 1_000 })];
    for (const event of [old, recent]) await query.store('a', [event]);
    await manage(query, 'PATCH', path, { state: 'active' });
    await eventually(async () => (await manage(query, 'GET', path)).body).toMatchObject({
      ...{ state: 'paused', pausedBecause: 'position_lost' },
    });
    await eventually(() => pauseIn(query, path)).toMatchObject({
      reason: 'position_lost',
      cause: expect.stringContaining('does not have this position'),
    });
    await eventually(() => metric(query, 'sluice_webhook_pauses_total{reason="position_lost"}')).toBe(1);
    expect(receiver.received.length).toBe(20);
    await manage(query, 'POST', `${path}/replay?from=${new Date(now).toISOString()}`);
    const resumed = (await manage(query, 'PATCH', path, { state: 'active' })).body;
    expect(resumed).toMatchObject({ state: 'active', pausedBecause: null, failingSince: null });
    await eventually(() => receiver.uuids.slice(20)).toEqual([recent.uuid]);
  } finally {
    await own.release();
  }
});

test('a Retry-After that is longer than the longest delay counts as that', async () => {
  await using query = await startWebhooks(database);
  await using receiver = await Receiver.start();
  receiver.behaviour = (received, response) => {
    if (receiver.received.length > 1) return accept(received, response);
    return response.writeHead(503, { 'retry-after': '86400' }).end();
  };
  const path = await subscribe(query, receiver.url);
  await query.store('a', [anEvent()]);
  await eventually(() => receiver.received.length).toBe(2);
  await manage(query, 'DELETE', path);
});

test('a webhook that waits for its next attempt makes it at once when its address or filter is changed, and only then', async () => {
  await using receiver = await Receiver.start();
  await using api = await startWebhooks(database, { WEBHOOK_DELIVERY: 'false' });
  const gone = 'http://127.0.0.1:9/';
  const [moved, filtered, waiting] = [
    await subscribe(api, gone),
    await subscribe(api, receiver.url),
    await subscribe(api, receiver.url),
  ];
  await api.clickHouse.command({
    query: `INSERT INTO webhook_positions (webhook_id, epoch, sequence, position, attempts, failing_since)
      SELECT webhook_id, 1, 1, position, 20, now64(3) FROM webhook_positions FINAL WHERE webhook_id IN {ids:Array(UUID)}`,
    query_params: { ids: [moved, filtered, waiting].map((path) => path.split('/').at(-1)) },
  });
  const event = anEvent();
  await api.store('a', [event]);
  // After 20 failures the next attempt comes in half an hour at the earliest.
  await using query = await startWebhooks(database, { WEBHOOK_RETRY_MS_MAX: '3600000' });
  await eventually(() => metric(query, 'sluice_webhooks_held')).toBe(3);
  const url = `${receiver.url}/new`;
  expect((await manage(query, 'PATCH', moved, { url })).body).toMatchObject({
    ...{ url, failedAttempts: 0, failingSince: null },
  });
  await eventually(() => receiver.uuids).toEqual([event.uuid]);
  await manage(query, 'PATCH', filtered, { filter: { event: 'e' } });
  await eventually(() => receiver.uuids).toEqual([event.uuid, event.uuid]);
  expect((await manage(query, 'GET', waiting)).body).toMatchObject({ failedAttempts: 20 });
  for (const path of [moved, filtered, waiting]) await manage(query, 'DELETE', path);
});
