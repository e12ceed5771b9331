import { isDeepStrictEqual } from 'node:util';
import { until } from '@sluice/shared/testing/until';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { metric } from '../testing/load.ts';
import { anEvent, aRegister, type QueryService, startQuery } from '../testing/query-service.ts';
import { send } from '../testing/views.ts';
import { accept, manage, type Received, Receiver, uuidsOf, WEBHOOKS_ENV } from '../testing/webhooks.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ENV);
});
afterAll(() => query.stop());

/** Creates a webhook of a workspace that no other test has, and returns how it is managed. */
async function subscribe(workspace: string, given: object) {
  const { status, body } = await manage(query, 'POST', '/webhooks', given, workspace);
  expect(status).toBe(201);
  const api = async (method: 'GET' | 'POST' | 'DELETE', path = '') =>
    await manage(query, method, `/webhooks/${body.id}${path}`, undefined, workspace);
  return { api, secret: body.secret };
}

/** Waits until a receiver has got these events, and nothing before, between or after them. */
async function untilGot(receiver: Receiver, uuids: readonly unknown[]): Promise<void> {
  await until('the events to be delivered', async () => isDeepStrictEqual(receiver.uuids, uuids));
}

test.concurrent('events that match are delivered in the order of storage, signed with each secret, and logged', async () => {
  await using receiver = await Receiver.start();
  await query.store('a', [anEvent({ event: 'before' })]);
  const { api, secret } = await subscribe('a', { url: receiver.url, filter: { event: 'e' } });
  const events = [anEvent({ timestampMs: 3e12 }), anEvent({ timestampMs: 1e12 }), anEvent({ timestampMs: 2e12 })];
  for (const event of events) await query.store('a', [event, anEvent({ event: 'other' })]);
  await query.store('b', [anEvent()]);
  await untilGot(
    receiver,
    events.map(({ uuid }) => uuid),
  );
  for (const { body, headers } of receiver.received) {
    expect(new Verifier(secret).verify(body, headers as Record<string, string>)).toMatchObject({ type: 'event' });
  }
  expect(new Set(receiver.ids).size).toBe(3);
  const { body: rotated } = await api('POST', '/rotate');
  const isSigned = ({ body, headers }: Received, by: string) => {
    try {
      return Boolean(new Verifier(by).verify(body, headers as Record<string, string>));
    } catch {
      return false;
    }
  };
  // A receiver that knows the new secret alone refuses what an instance signs that has not read it yet, and gets it again.
  receiver.behaviour = (received, response) => response.writeHead(isSigned(received, rotated.secret) ? 204 : 401).end();
  const next = anEvent();
  await query.store('a', [next]);
  const isTaken = ({ body }: Received) => uuidsOf(body).includes(next.uuid);
  const isTakenBy = async () => receiver.received.some((one) => isTaken(one) && isSigned(one, rotated.secret));
  await until('the event to be signed with the new secret', isTakenBy);
  expect(receiver.received.filter(isTaken).every((one) => isSigned(one, secret))).toBe(true);
  const logged = async () => ((await api('GET', '/deliveries')).body['deliveries'] as object[]).length;
  await until('all deliveries to be logged', async () => (await logged()) > 3);
  await until('no webhook to be behind', async () => (await metric(query, 'sluice_webhook_lag_seconds')) === 0);
});

test.concurrent('a webhook filters by what the organization of an event has when the event is read', async () => {
  await using receiver = await Receiver.start();
  await using ofSegment = await Receiver.start();
  const body = { of: 'organizations', filters: { 'properties.plan': 'pro' } };
  await send(query, 'PUT', '/segments/paying', body, 'admin-c');
  await subscribe('c', { url: ofSegment.url, filter: { segment: 'paying' } });
  await subscribe('c', { url: receiver.url, filter: { 'organization.properties.plan': 'pro' } });
  const register = aRegister(1, 'set', '"pro"');
  const row = { workspace_id: 'c', kind: 'organization', id: 'acme', property: 'plan', register };
  await query.insert('entity_properties', [row]);
  const [first, other, last] = ['acme', 'bolt', 'acme'].map((groupId) => anEvent({ groupId }));
  for (const event of [first, other, last]) await query.store('c', event ? [event] : []);
  for (const one of [receiver, ofSegment]) await untilGot(one, [first?.uuid, last?.uuid]);
});

test.concurrent('410 pauses at once, and resume goes on where it stopped', async () => {
  await using receiver = await Receiver.start();
  receiver.behaviour = (_, response) => response.writeHead(410).end();
  const { api } = await subscribe('d', { url: receiver.url });
  const events = [anEvent(), anEvent()];
  for (const event of events) await query.store('d', [event]);
  await until('the webhook to be paused', async () => (await api('GET')).body['state'] === 'paused');
  expect((await api('GET')).body).toMatchObject({ pausedBecause: 'gone' });
  expect(receiver.received.length).toBe(1);
  receiver.behaviour = accept;
  await api('POST', '/resume');
  await untilGot(receiver, [events[0]?.uuid, ...events.map(({ uuid }) => uuid)]);
  await api('DELETE');
});

test.concurrent('replay delivers again what was received since a time, with the same ids', async () => {
  await using receiver = await Receiver.start();
  const { api } = await subscribe('f', { url: receiver.url });
  const events = [1, 2, 3].map((day) => anEvent({ receivedAtUs: Date.UTC(2026, 2, day) * 1_000 }));
  for (const event of events) await query.store('f', [event]);
  const uuids = events.map(({ uuid }) => uuid);
  await untilGot(receiver, uuids);
  await api('POST', '/replay?from=2026-03-02');
  await untilGot(receiver, [...uuids, ...uuids.slice(1)]);
  expect(receiver.ids.slice(3)).toEqual(receiver.ids.slice(1, 3));
  await api('DELETE');
});

test.concurrent('events of a deleted user are not delivered any more, also when they were tried before', async () => {
  await using receiver = await Receiver.start();
  receiver.behaviour = (_, response) => response.writeHead(500).end();
  const { api } = await subscribe('g', { url: receiver.url });
  const [deleted, kept] = [anEvent({ userId: 'u' }), anEvent()];
  await query.store('g', [deleted]);
  await until('the event to be tried', async () => receiver.uuids.includes(deleted.uuid));
  await query.insert('pending_deletions', [{ workspace_id: 'g', user_id: 'u', version: 9e15 }]);
  await query.insert('user_deletions', [{ workspace_id: 'g', user_id: 'u', version: 9e15 }]);
  await query.store('g', [kept]);
  receiver.behaviour = accept;
  await until('the other event', async () => receiver.uuids.at(-1) === kept.uuid);
  await api('DELETE');
});
