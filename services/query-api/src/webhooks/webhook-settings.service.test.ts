import type { ServerResponse } from 'node:http';
import { type TestDatabase, takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent } from '../testing/query-service.ts';
import { manage, Receiver, startWebhooks } from '../testing/webhooks.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await takeDatabase(inject('clickhouseUrl'));
});
afterAll(() => database.release());

test('WEBHOOK_ATTEMPTS_PER_WORKSPACE: one workspace has so many attempts under way, and others have theirs', async () => {
  await using service = await startWebhooks(database, { WEBHOOK_ATTEMPTS_PER_WORKSPACE: '1' });
  await using receiver = await Receiver.start();
  const held: ServerResponse[] = [];
  receiver.behaviour = (_, response) => void held.push(response);
  const [one, other, last] = [anEvent(), anEvent(), anEvent()];
  for (const workspace of ['a', 'a', 'b']) {
    expect((await manage(service, 'POST', '/webhooks', { url: receiver.url }, workspace)).status).toBe(201);
  }
  await service.store('a', [one]);
  await eventually(() => receiver.uuids).toEqual([one.uuid]);
  // What begins later comes later: the second webhook of the workspace had its time.
  await service.store('b', [other]);
  await eventually(() => receiver.uuids).toEqual([one.uuid, other.uuid]);
  await service.store('b', [last]);
  held[1]?.writeHead(204).end();
  await eventually(() => receiver.uuids).toEqual([one.uuid, other.uuid, last.uuid]);
  held[0]?.writeHead(204).end();
  await eventually(() => receiver.uuids).toEqual([one.uuid, other.uuid, last.uuid, one.uuid]);
});

test('WEBHOOK_ALLOW_NETWORKS: addresses of these networks are taken, and no others that are not public', async () => {
  await using service = await startWebhooks(database, {
    ...{ WEBHOOK_DELIVERY: 'false', WEBHOOK_ALLOW_NETWORKS: '10.1.0.0/16,192.168.7.7' },
  });
  const statusOf = async (host: string) =>
    (await manage(service, 'POST', '/webhooks', { url: `https://${host}/events` }, 'b')).status;
  const statuses = await Promise.all(['10.1.2.3', '192.168.7.7', '10.2.0.1', '192.168.7.8', '127.0.0.1'].map(statusOf));
  expect(statuses).toEqual([201, 201, 400, 400, 400]);
});
