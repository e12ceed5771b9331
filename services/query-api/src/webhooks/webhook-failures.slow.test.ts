import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { metric } from '../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import { someEvents } from '../testing/streams.ts';
import { accept, manage, Receiver, refuse, subscribe, uuidsOf, WEBHOOKS_ENV } from '../testing/webhooks.ts';
import { BATCH_BYTES_MAX } from './delivery.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ENV);
});
afterAll(() => query.stop());

test('a batched webhook gets several events at once', async () => {
  await using receiver = await Receiver.start();
  const path = await subscribe(query, { url: receiver.url, batched: true }, 'b');
  const events = someEvents(250);
  await query.store('b', events);
  await eventually(() => receiver.uuids.length).toBe(250);
  expect([...receiver.uuids].sort()).toEqual(events.map(({ uuid }) => uuid).sort());
  expect(receiver.received.map(({ body }) => uuidsOf(body).length)).toEqual([100, 100, 50]);
  await manage(query, 'DELETE', path, undefined, 'b');
});

test('a batch ends before the event with which it would have more than a mebibyte', async () => {
  await using receiver = await Receiver.start();
  const path = await subscribe(query, { url: receiver.url, batched: true }, 'h');
  const text = 'x'.repeat(300_000);
  await query.store('h', someEvents(7, { properties: JSON.stringify({ text }) }));
  // The last one waits for others.
  await eventually(() => receiver.uuids.length).toBeGreaterThanOrEqual(6);
  expect(receiver.received.slice(0, 2).map(({ body }) => uuidsOf(body).length)).toEqual([3, 3]);
  for (const { body } of receiver.received) expect(body.length).toBeLessThanOrEqual(BATCH_BYTES_MAX + 200);
  await manage(query, 'DELETE', path, undefined, 'h');
});

test.each([
  ['an error', refuse],
  ['a redirect, which it does not follow', (_, response) => response.writeHead(302, { location: '/elsewhere' }).end()],
  ['no HTTP', (_, response) => response.socket?.end('nonsense\r\n\r\n')],
  ['a connection that breaks off', (_, response) => response.socket?.destroy()],
] as [string, Receiver['behaviour']][])(
  'a receiver that answers with %s gets the delivery again with the same id, and no later one before',
  async (_, behaviour) => {
    await using receiver = await Receiver.start();
    await using other = await Receiver.start();
    receiver.behaviour = behaviour;
    const path = await subscribe(query, { url: receiver.url }, 'c');
    const otherPath = await subscribe(query, { url: other.url }, 'c');
    const [first, second] = [anEvent(), anEvent()];
    await query.store('c', [first]);
    await query.store('c', [second]);
    // It delays nobody else.
    await eventually(() => other.uuids).toEqual([first.uuid, second.uuid]);
    await eventually(() => receiver.received.length).toBeGreaterThan(1);
    expect(new Set(receiver.ids).size).toBe(1);
    const { body } = await manage(query, 'GET', path, undefined, 'c');
    expect(body).toMatchObject({ state: 'active', failingSince: expect.any(String) });
    expect(body['failedAttempts']).toBeGreaterThan(0);
    receiver.behaviour = accept;
    await eventually(() => receiver.uuids.at(-1)).toBe(second.uuid);
    expect(new Set(receiver.ids).size).toBe(2);
    await eventually(async () => (await manage(query, 'GET', path, undefined, 'c')).body['failingSince']).toBeNull();
    for (const one of [path, otherPath]) await manage(query, 'DELETE', one, undefined, 'c');
  },
);

test('a batch that failed is sent again as the same batch with the same id, whatever came and was changed meanwhile', async () => {
  await using receiver = await Receiver.start();
  receiver.behaviour = refuse;
  const path = await subscribe(query, { url: receiver.url, batched: true }, 'd');
  const [first, later] = [someEvents(3), someEvents(2)];
  await query.store('d', first);
  await eventually(() => receiver.received.length).toBeGreaterThan(0);
  await query.store('d', later);
  const again = async () => {
    const before = receiver.received.length;
    await eventually(() => receiver.received.length).toBeGreaterThan(before);
  };
  await again();
  await manage(query, 'PATCH', path, { state: 'paused' }, 'd');
  await manage(query, 'PATCH', path, { state: 'active' }, 'd');
  await again();
  await again();
  receiver.behaviour = accept;
  await eventually(() => new Set(receiver.uuids).size).toBe(5);
  const bodies = Map.groupBy(receiver.received, ({ headers }) => headers['webhook-id']);
  expect([...bodies.values()].map((same) => new Set(same.map(({ body }) => body)).size)).toEqual([1, 1]);
  const uuidsOfBodies = [...bodies.values()].map(([one]) => uuidsOf(one?.body ?? '').toSorted());
  expect(uuidsOfBodies).toEqual([first, later].map((events) => events.map(({ uuid }) => uuid).toSorted()));
  await manage(query, 'DELETE', path, undefined, 'd');
});

test('what is changed of a webhook that runs is in force for its deliveries: filter, address, form', async () => {
  await using receiver = await Receiver.start();
  await using other = await Receiver.start();
  const path = await subscribe(query, { url: receiver.url, filter: { event: 'one' } }, 'f');
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
  await manage(query, 'PATCH', path, { filter: { event: 'two' } }, 'f');
  await untilTaken(receiver, 'two', (body) => body.includes('"event":"two"'));
  const [left, taken] = [await store('one'), await store('two')];
  await eventually(() => receiver.uuids).toContain(taken);
  expect(receiver.uuids).not.toContain(left);
  await manage(query, 'PATCH', path, { url: other.url }, 'f');
  await untilTaken(other, 'two', () => true);
  const moved = await store('two');
  await eventually(() => other.uuids).toContain(moved);
  expect(receiver.uuids).not.toContain(moved);
  await manage(query, 'PATCH', path, { batched: true }, 'f');
  await untilTaken(other, 'two', (body) => body.startsWith('{"type":"events"'));
  await manage(query, 'DELETE', path, undefined, 'f');
});

test('a paused webhook gets nothing, and afterwards everything', async () => {
  await using receiver = await Receiver.start();
  const path = await subscribe(query, { url: receiver.url }, 'e');
  const [first, second] = [anEvent(), anEvent()];
  await query.store('e', [first]);
  await eventually(() => receiver.uuids).toEqual([first.uuid]);
  await manage(query, 'PATCH', path, { state: 'paused' }, 'e');
  await eventually(() => metric(query, 'sluice_webhooks_held')).toBe(await activeWebhooks());
  await query.store('e', [second]);
  await manage(query, 'PATCH', path, { state: 'active' }, 'e');
  await eventually(() => receiver.uuids).toEqual([first.uuid, second.uuid]);
  await manage(query, 'DELETE', path, undefined, 'e');
});

async function activeWebhooks(): Promise<number> {
  const result = await query.clickHouse.query({
    query: `SELECT count() AS active FROM webhooks FINAL WHERE NOT is_deleted
      AND id NOT IN (SELECT webhook_id FROM webhook_states FINAL WHERE state = 'paused')`,
    format: 'JSONEachRow',
  });
  return (await result.json<{ active: number }>())[0]?.active ?? 0;
}
