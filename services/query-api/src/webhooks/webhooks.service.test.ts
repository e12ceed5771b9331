import { eventually } from '@sluice/shared/testing/eventually';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { metric } from '../testing/load.ts';
import { anEvent, aRegister, type QueryService, startQuery } from '../testing/query-service.ts';
import { send } from '../testing/views.ts';
import { accept, manage, type Received, Receiver, uuidsOf, WEBHOOKS_ENV } from '../testing/webhooks.ts';

let query: QueryService;
let workspace = 'a';

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ENV);
});
afterAll(() => query.stop());

/** Creates a webhook of a workspace that no other test has. */
async function subscribe(of: string, given: object): Promise<{ readonly path: string; readonly secret: string }> {
  workspace = of;
  const { status, body } = await manage(query, 'POST', '/webhooks', given, of);
  expect(status).toBe(201);
  return { path: `/webhooks/${body.id}`, secret: body.secret };
}

const api = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, payload?: object) =>
  manage(query, method, path, payload, workspace);

test('events that match are delivered in the order of storage, signed with each secret, and logged', async () => {
  await using receiver = await Receiver.start();
  await query.store('a', [anEvent({ event: 'before' })]);
  const { path, secret } = await subscribe('a', { url: receiver.url, filter: { event: 'e' } });
  const events = [anEvent({ timestampMs: 3e12 }), anEvent({ timestampMs: 1e12 }), anEvent({ timestampMs: 2e12 })];
  for (const event of events) await query.store('a', [event, anEvent({ event: 'other' })]);
  await query.store('b', [anEvent()]);
  await eventually(() => receiver.uuids).toEqual(events.map(({ uuid }) => uuid));
  for (const { body, headers } of receiver.received) {
    expect(new Verifier(secret).verify(body, headers as Record<string, string>)).toMatchObject({ type: 'event' });
  }
  expect(new Set(receiver.ids).size).toBe(3);
  const { body: rotated } = await api('POST', `${path}/rotate`);
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
  await eventually(() => receiver.received.some((one) => isTaken(one) && isSigned(one, rotated.secret))).toBe(true);
  expect(receiver.received.filter(isTaken).every((one) => isSigned(one, secret))).toBe(true);
  await eventually(
    async () => ((await api('GET', `${path}/deliveries`)).body['deliveries'] as object[]).length,
  ).toBeGreaterThan(3);
  await eventually(() => metric(query, 'sluice_webhook_lag_seconds')).toBe(0);
});

test('a webhook filters by what the organization of an event has when the event is read', async () => {
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
  for (const one of [receiver, ofSegment]) await eventually(() => one.uuids).toEqual([first?.uuid, last?.uuid]);
});

test('410 pauses at once, and resume goes on where it stopped', async () => {
  await using receiver = await Receiver.start();
  receiver.behaviour = (_, response) => response.writeHead(410).end();
  const { path } = await subscribe('d', { url: receiver.url });
  const events = [anEvent(), anEvent()];
  for (const event of events) await query.store('d', [event]);
  await eventually(async () => (await api('GET', path)).body).toMatchObject({ state: 'paused', pausedBecause: 'gone' });
  expect(receiver.received.length).toBe(1);
  receiver.behaviour = accept;
  await api('POST', `${path}/resume`);
  await eventually(() => receiver.uuids).toEqual([events[0]?.uuid, ...events.map(({ uuid }) => uuid)]);
  await api('DELETE', path);
});

test('replay delivers again what was received since a time, with the same ids', async () => {
  await using receiver = await Receiver.start();
  const { path } = await subscribe('f', { url: receiver.url });
  const events = [1, 2, 3].map((day) => anEvent({ receivedAtUs: Date.UTC(2026, 2, day) * 1_000 }));
  for (const event of events) await query.store('f', [event]);
  const uuids = events.map(({ uuid }) => uuid);
  await eventually(() => receiver.uuids).toEqual(uuids);
  await api('POST', `${path}/replay?from=2026-03-02`);
  await eventually(() => receiver.uuids).toEqual([...uuids, ...uuids.slice(1)]);
  expect(receiver.ids.slice(3)).toEqual(receiver.ids.slice(1, 3));
  await api('DELETE', path);
});

test('events of a deleted user are not delivered any more, also when they were tried before', async () => {
  await using receiver = await Receiver.start();
  receiver.behaviour = (_, response) => response.writeHead(500).end();
  const { path } = await subscribe('g', { url: receiver.url });
  const [deleted, kept] = [anEvent({ userId: 'u' }), anEvent()];
  await query.store('g', [deleted]);
  await eventually(() => receiver.uuids).toContain(deleted.uuid);
  await query.insert('pending_deletions', [{ workspace_id: 'g', user_id: 'u', version: 9e15 }]);
  await query.insert('user_deletions', [{ workspace_id: 'g', user_id: 'u', version: 9e15 }]);
  await query.store('g', [kept]);
  receiver.behaviour = accept;
  await eventually(() => receiver.uuids.at(-1)).toBe(kept.uuid);
  await api('DELETE', path);
});
