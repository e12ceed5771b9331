import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { metric } from '../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import { someEvents } from '../testing/streams.ts';
import { accept, manage, Receiver, uuidsOf, WEBHOOKS_ENV } from '../testing/webhooks.ts';
import { BATCH_BYTES_MAX } from './delivery.ts';

let query: QueryService;
let workspace = 'a';

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ENV);
});
afterAll(() => query.stop());

/** Creates a webhook of a workspace that no other test has. */
async function subscribe(of: string, given: object): Promise<{ readonly path: string }> {
  workspace = of;
  const { status, body } = await manage(query, 'POST', '/webhooks', given, of);
  expect(status).toBe(201);
  return { path: `/webhooks/${body.id}` };
}

const api = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, payload?: object) =>
  manage(query, method, path, payload, workspace);

test('a batched webhook gets several events at once', async () => {
  await using receiver = await Receiver.start();
  const { path } = await subscribe('b', { url: receiver.url, batched: true });
  const events = someEvents(250);
  await query.store('b', events);
  await eventually(() => receiver.uuids.length).toBe(250);
  expect([...receiver.uuids].sort()).toEqual(events.map(({ uuid }) => uuid).sort());
  expect(receiver.received.map(({ body }) => uuidsOf(body).length)).toEqual([100, 100, 50]);
  await api('DELETE', path);
});

test('a batch ends before the event with which it would have more than a mebibyte', async () => {
  await using receiver = await Receiver.start();
  const { path } = await subscribe('h', { url: receiver.url, batched: true });
  const text = 'x'.repeat(300_000);
  await query.store('h', someEvents(8, { properties: JSON.stringify({ text }) }));
  await eventually(() => receiver.uuids.length).toBe(8);
  expect(receiver.received.map(({ body }) => uuidsOf(body).length)).toEqual([3, 3, 2]);
  for (const { body } of receiver.received) expect(body.length).toBeLessThanOrEqual(BATCH_BYTES_MAX + 200);
  await api('DELETE', path);
});

test.each([
  ['an error', (_, response) => response.writeHead(500).end()],
  ['a redirect, which it does not follow', (_, response) => response.writeHead(302, { location: '/elsewhere' }).end()],
  ['no HTTP', (_, response) => response.socket?.end('nonsense\r\n\r\n')],
  ['a connection that breaks off', (_, response) => response.socket?.destroy()],
] as [string, Receiver['behaviour']][])(
  'a receiver that answers with %s gets the delivery again with the same id, and no later one before',
  async (_, behaviour) => {
    await using receiver = await Receiver.start();
    await using other = await Receiver.start();
    receiver.behaviour = behaviour;
    const { path } = await subscribe('c', { url: receiver.url });
    const { path: otherPath } = await subscribe('c', { url: other.url });
    const [first, second] = [anEvent(), anEvent()];
    await query.store('c', [first]);
    await query.store('c', [second]);
    // It delays nobody else.
    await eventually(() => other.uuids).toEqual([first.uuid, second.uuid]);
    await eventually(() => receiver.received.length).toBeGreaterThan(1);
    expect(new Set(receiver.ids).size).toBe(1);
    const { body } = await api('GET', path);
    expect(body).toMatchObject({ state: 'active', failingSince: expect.any(String) });
    expect(body['failedAttempts']).toBeGreaterThan(0);
    receiver.behaviour = accept;
    await eventually(() => receiver.uuids.at(-1)).toBe(second.uuid);
    expect(new Set(receiver.ids).size).toBe(2);
    await eventually(async () => (await api('GET', path)).body['failingSince']).toBeNull();
    for (const one of [path, otherPath]) await api('DELETE', one);
  },
);

test('a batch that failed is sent again as the same batch with the same id, whatever came and was changed meanwhile', async () => {
  await using receiver = await Receiver.start();
  receiver.behaviour = (_, response) => response.writeHead(500).end();
  const { path } = await subscribe('d', { url: receiver.url, batched: true });
  const [first, later] = [someEvents(3), someEvents(2)];
  await query.store('d', first);
  await eventually(() => receiver.received.length).toBeGreaterThan(0);
  await query.store('d', later);
  const again = async () => {
    const before = receiver.received.length;
    await eventually(() => receiver.received.length).toBeGreaterThan(before);
  };
  await again();
  await api('PATCH', path, { state: 'paused' });
  await api('PATCH', path, { state: 'active' });
  await again();
  await again();
  receiver.behaviour = accept;
  await eventually(() => new Set(receiver.uuids).size).toBe(5);
  const bodies = Map.groupBy(receiver.received, ({ headers }) => headers['webhook-id']);
  expect([...bodies.values()].map((same) => new Set(same.map(({ body }) => body)).size)).toEqual([1, 1]);
  const uuidsOfBodies = [...bodies.values()].map(([one]) => uuidsOf(one?.body ?? '').toSorted());
  expect(uuidsOfBodies).toEqual([first, later].map((events) => events.map(({ uuid }) => uuid).toSorted()));
  await api('DELETE', path);
});

test('what is changed of a webhook that runs is in force for its deliveries: filter, address, form', async () => {
  await using receiver = await Receiver.start();
  await using other = await Receiver.start();
  const { path } = await subscribe('f', { url: receiver.url, filter: { event: 'one' } });
  const store = async (event: string) => {
    const stored = anEvent({ event });
    await query.store('f', [stored]);
    return stored.uuid;
  };
  /** Until a change is in force, what was delivered before may still come. */
  const untilTaken = async (at: Receiver, event: string, isTaken: (body: string) => boolean) => {
    await eventually(async () => {
      await store(event);
      return at.received.some(({ body }) => isTaken(body));
    }).toBe(true);
  };
  await untilTaken(receiver, 'one', (body) => body.includes('"event":"one"'));
  await api('PATCH', path, { filter: { event: 'two' } });
  await untilTaken(receiver, 'two', (body) => body.includes('"event":"two"'));
  const [left, taken] = [await store('one'), await store('two')];
  await eventually(() => receiver.uuids).toContain(taken);
  expect(receiver.uuids).not.toContain(left);
  await api('PATCH', path, { url: other.url });
  await untilTaken(other, 'two', () => true);
  const moved = await store('two');
  await eventually(() => other.uuids).toContain(moved);
  expect(receiver.uuids).not.toContain(moved);
  await api('PATCH', path, { batched: true });
  await untilTaken(other, 'two', (body) => body.startsWith('{"type":"events"'));
  await api('DELETE', path);
});

test('a paused webhook gets nothing, and afterwards everything', async () => {
  await using receiver = await Receiver.start();
  const { path } = await subscribe('e', { url: receiver.url });
  const [first, second] = [anEvent(), anEvent()];
  await query.store('e', [first]);
  await eventually(() => receiver.uuids).toEqual([first.uuid]);
  await api('PATCH', path, { state: 'paused' });
  await eventually(() => metric(query, 'sluice_webhooks_held')).toBe(await activeWebhooks());
  await query.store('e', [second]);
  await api('PATCH', path, { state: 'active' });
  await eventually(() => receiver.uuids).toEqual([first.uuid, second.uuid]);
  await api('DELETE', path);
});

async function activeWebhooks(): Promise<number> {
  const result = await query.clickHouse.query({
    query: `SELECT count() AS active FROM webhooks FINAL WHERE NOT is_deleted
      AND id NOT IN (SELECT webhook_id FROM webhook_states FINAL WHERE state = 'paused')`,
    format: 'JSONEachRow',
  });
  return (await result.json<{ active: number }>())[0]?.active ?? 0;
}
