import { createDatabase, type TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { metric } from '../testing/load.ts';
import { anEvent } from '../testing/query-service.ts';
import { someEvents } from '../testing/streams.ts';
import { accept, manage, pauseIn, Receiver, refuse, startWebhooks, subscribe } from '../testing/webhooks.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase(inject('clickhouseUrl'));
});
afterAll(() => database.release());

test('a webhook whose receiver fails for too long is paused, says so, and goes on where it stopped', async () => {
  await using query = await startWebhooks(database, { WEBHOOK_GIVE_UP_MS: '1000' });
  await using receiver = await Receiver.start();
  const path = await subscribe(query, receiver.url);
  const events = someEvents(6);
  const uuids = events.map(({ uuid }) => uuid);
  for (const event of events.slice(0, 2)) await query.store('a', [event]);
  await eventually(() => receiver.uuids).toEqual(uuids.slice(0, 2));
  receiver.behaviour = refuse;
  for (const event of events.slice(2, 4)) await query.store('a', [event]);
  await eventually(async () => (await manage(query, 'GET', path)).body).toMatchObject({
    ...{ state: 'paused', pausedBecause: 'failing', failingSince: expect.any(String) },
  });
  // It is said once the state is stored, so a response may have the state before.
  const said = { reason: 'failing', workspace: 'a', cause: 'the receiver answered 500' };
  await eventually(() => pauseIn(query, path)).toMatchObject({ ...said, msg: expect.stringContaining('is paused') });
  await eventually(() => metric(query, 'sluice_webhook_pauses_total{reason="failing"}')).toBe(1);
  await eventually(() => metric(query, 'sluice_webhooks_paused{reason="failing"}')).toBe(1);
  await eventually(() => metric(query, 'sluice_webhooks_held')).toBe(0);
  // Nothing is sent while it is paused, and nothing is lost.
  const sent = receiver.received.length;
  for (const event of events.slice(4)) await query.store('a', [event]);
  receiver.behaviour = accept;
  expect((await manage(query, 'POST', `${path}/resume`)).body).toMatchObject({
    state: 'active',
    pausedBecause: null,
    failingSince: null,
  });
  await eventually(() => receiver.uuids.slice(sent)).toEqual(uuids.slice(2));
  expect(new Set(receiver.uuids.slice(2, sent))).toEqual(new Set([uuids[2]]));
  await eventually(() => metric(query, 'sluice_webhooks_paused{reason="failing"}')).toBe(0);
  await manage(query, 'DELETE', path);
});

test('without its account in ClickHouse, the log of the service says what to do', async () => {
  await using query = await startWebhooks(database, { CLICKHOUSE_WEBHOOKS_USER: 'nobody' });
  await eventually(() => query.log.filter(({ level }) => level === 'error')).toMatchObject([
    { msg: 'cannot read or claim webhooks', remedy: expect.stringContaining('deploy/clickhouse/accounts.sql') },
  ]);
  expect(await manage(query, 'GET', '/webhooks')).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
});

test('after 429 and 503 the receiver is sent nothing before the time of Retry-After', async () => {
  await using query = await startWebhooks(database, { WEBHOOK_RETRY_MS_MAX: '60000' });
  await using receiver = await Receiver.start();
  // Each longer than the usual delay after as many failures.
  const asked = [
    { status: 429, seconds: 2 },
    { status: 503, seconds: 3 },
  ];
  const times: number[] = [];
  receiver.behaviour = (received, response) => {
    times.push(performance.now());
    const now = asked[times.length - 1];
    if (!now) return accept(received, response);
    return response.writeHead(now.status, { 'retry-after': String(now.seconds) }).end();
  };
  const path = await subscribe(query, receiver.url);
  await query.store('a', [anEvent()]);
  await eventually(() => times.length).toBe(3);
  for (const [index, { seconds }] of asked.entries()) {
    expect((times[index + 1] ?? 0) - (times[index] ?? 0)).toBeGreaterThanOrEqual(seconds * 1_000 - 10);
  }
  await manage(query, 'DELETE', path);
});
