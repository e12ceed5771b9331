import { sleep } from '@sluice/shared/base/retry';
import { createDatabase, type TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { gateOf } from '../testing/insert-gate.ts';
import { metric } from '../testing/load.ts';
import { someEvents } from '../testing/streams.ts';
import { accept, manage, Receiver, startWebhooks } from '../testing/webhooks.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createDatabase(inject('clickhouseUrl'));
});
afterAll(() => database.release());

test('deliveries wait when their positions cannot be stored, so that few are sent again', async () => {
  const gate = gateOf('webhook_positions');
  await using query = await startWebhooks(database, {}, gate.wrap);
  await using receiver = await Receiver.start();
  const { body } = await manage(query, 'POST', '/webhooks', { url: receiver.url });
  await eventually(() => metric(query, 'sluice_webhooks_held')).toBe(1);
  receiver.behaviour = (received, response) => setTimeout(() => accept(received, response), 100);
  gate.close();
  await query.store('a', someEvents(100));
  await eventually(() => receiver.received.length).toBeGreaterThan(3);
  // Longer than deliveries go on without their positions.
  await sleep(2_000);
  const sent = receiver.received.length;
  await sleep(1_000);
  expect(receiver.received.length).toBe(sent);
  expect(sent).toBeLessThan(40);
  receiver.behaviour = accept;
  gate.open();
  await eventually(() => receiver.received.length).toBe(100);
  expect(new Set(receiver.uuids).size).toBe(100);
  await manage(query, 'DELETE', `/webhooks/${body.id}`);
});

test('a slow receiver costs no query for each event, however many wait', async () => {
  await using query = await startWebhooks(database);
  await using receiver = await Receiver.start();
  const { body } = await manage(query, 'POST', '/webhooks', { url: receiver.url });
  await eventually(() => metric(query, 'sluice_webhooks_held')).toBe(1);
  receiver.behaviour = (received, response) => setTimeout(() => accept(received, response), 50);
  for (let block = 0; block < 2; block += 1) await query.store('a', someEvents(500));
  await eventually(() => receiver.received.length).toBeGreaterThan(10);
  const reads = () => metric(query, 'sluice_query_duration_seconds_count{kind="stream_events",outcome="ok"}');
  const [readsBefore, sentBefore] = [await reads(), receiver.received.length];
  await eventually(() => receiver.received.length).toBeGreaterThan(sentBefore + 40);
  expect((await reads()) - readsBefore).toBeLessThan(10);
  await manage(query, 'DELETE', `/webhooks/${body.id}`);
});
