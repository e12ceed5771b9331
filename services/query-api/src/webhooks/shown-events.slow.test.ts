import { sleep } from '@sluice/shared/base/retry';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { ClickHouseReader } from '../store/clickhouse-reader.ts';
import { DAY_MS, keep } from '../testing/kept-events.ts';
import { metric } from '../testing/load.ts';
import {
  anEvent,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
  type TestEvent,
} from '../testing/query-service.ts';
import { readerWith } from '../testing/reader-with.ts';
import { accept, manage, Receiver, uuidsOf, WEBHOOKS_ENV } from '../testing/webhooks.ts';
import { BATCH_EVENTS_MAX } from './delivery.ts';

let query: QueryService;
/** Takes the response of ClickHouse to the next statement of a kind, once it has rows; what it returns is waited for. */
let late: { readonly kind: string; readonly take: () => Promise<void> } | undefined;

/** A reader whose statements may be answered late. */
function slowly(reader: ClickHouseReader): ClickHouseReader {
  return readerWith(reader, {
    async *read(request) {
      if (!late || !request.queryId.includes(`/${late.kind}/`)) return yield* reader.read(request);
      const batches = await Array.fromAsync(reader.read(request));
      const own = late;
      if (batches.length > 0 || own.kind !== 'stream_events') {
        late = undefined;
        await own.take();
      }
      yield* batches;
    },
  });
}

/** Until the returned function is called, ClickHouse does not answer the next statement of a kind any more, which it has read. */
function answerLate(kind: string): { readonly isRead: Promise<void>; readonly answer: () => void } {
  const [read, opening] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const take = () => {
    read.resolve();
    return opening.promise;
  };
  late = { kind, take };
  return { isRead: read.promise, answer: opening.resolve };
}

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ENV, slowly);
});
afterAll(() => query.stop());

/** A receiver that answers its first request when it is told to, and the others at once. */
async function holdingReceiver(status = 204) {
  const receiver = await Receiver.start();
  const held = Promise.withResolvers<void>();
  receiver.behaviour = (_, response) => {
    receiver.behaviour = accept;
    void held.promise.then(() => response.writeHead(status).end());
  };
  return { receiver, answer: held.resolve };
}

/** Stores the deletion of a user, as the writer does; and then erases, or has not yet. */
async function deleteUser(workspace: string, user: string, isErased: boolean): Promise<void> {
  const row = { workspace_id: workspace, user_id: user, version: Date.now() * 1_000 };
  await query.insert('user_deletions', [row]);
  if (!isErased) await query.insert('pending_deletions', [row]);
  // A deletion is in force within a second.
  await sleep(DELETIONS_FORGOTTEN_MS);
}

async function subscribe(workspace: string, url: string, batched = false): Promise<void> {
  expect((await manage(query, 'POST', '/webhooks', { url, batched }, workspace)).status).toBe(201);
}

const ids = (events: readonly TestEvent[]) => events.map(({ uuid }) => uuid);
/** Waits until so many events more have been read for the webhook: they are in front of the attempt that is under way. */
async function storeRead(workspace: string, events: readonly TestEvent[]): Promise<void> {
  const sent = () => metric(query, 'sluice_stream_events_total');
  const before = await sent();
  await query.store(workspace, events);
  await eventually(sent).toBe(before + events.length);
}

const isFirstHeld = ({ received }: Receiver) => eventually(() => received.length).toBe(1);

test.each([
  ['a', 'hidden', false],
  ['b', 'erased', true],
])(
  'events of a user or visitor are not sent that were read before the deletion was stored (workspace %s: they are %s)',
  async (workspace, _, isErased) => {
    const { receiver, answer } = await holdingReceiver();
    await using _receiver = receiver;
    await subscribe(workspace, receiver.url);
    const [first, ...others] = Array.from({ length: 5 }, () => anEvent({ userId: 'u' })) as [TestEvent, ...TestEvent[]];
    const [kept, last] = [anEvent({ userId: 'v' }), anEvent()];
    await query.store(workspace, [first]);
    await isFirstHeld(receiver);
    const ofVisitor = anEvent({ anonymousId: 'u' });
    await storeRead(workspace, [...others, ofVisitor, kept]);
    await deleteUser(workspace, visitorOf('u'), isErased);
    await deleteUser(workspace, 'u', isErased);
    // The user came back.
    const again = anEvent({ userId: 'u', receivedAtUs: (Date.now() + 60_000) * 1_000 });
    await query.store(workspace, [again, last]);
    answer();
    await eventually(() => receiver.uuids).toContain(last.uuid);
    await eventually(() => receiver.uuids).toContain(again.uuid);
    expect(receiver.uuids.toSorted()).toEqual(ids([first, kept, again, last]).toSorted());
  },
);

test('events that have expired while they waited are not sent', async () => {
  const { receiver, answer } = await holdingReceiver();
  await using _receiver = receiver;
  await subscribe('c', receiver.url);
  const [first, kept] = [anEvent(), anEvent({ timestampMs: Date.now() })];
  const old = Array.from({ length: 4 }, () => anEvent({ timestampMs: Date.now() - 90 * DAY_MS }));
  await query.store('c', [first]);
  await isFirstHeld(receiver);
  await storeRead('c', [...old, kept]);
  await keep(query, { c: 30 });
  answer();
  await eventually(() => receiver.uuids).toContain(kept.uuid);
  expect(receiver.uuids).toEqual(ids([first, kept]));
});

test('a batch that is sent again leaves out what was deleted since, under another id', async () => {
  const { receiver, answer } = await holdingReceiver(500);
  await using _receiver = receiver;
  await subscribe('d', receiver.url, true);
  const [deleted, last] = [anEvent({ userId: 'u' }), anEvent()];
  const kept = Array.from({ length: BATCH_EVENTS_MAX - 1 }, () => anEvent({ userId: 'v' }));
  await query.store('d', [deleted, ...kept]);
  await isFirstHeld(receiver);
  await deleteUser('d', 'u', false);
  // With it the second one is full as well, and does not wait for others.
  await query.store('d', [last]);
  answer();
  await eventually(() => receiver.received.length).toBe(2);
  const [before, after] = receiver.received.map(({ body }) => uuidsOf(body).toSorted());
  expect(before).toEqual(ids([deleted, ...kept]).toSorted());
  expect(after).toEqual(ids([...kept, last]).toSorted());
  expect(receiver.ids[0]).not.toBe(receiver.ids[1]);
});

test('an event that ClickHouse returns late is not sent once its user is deleted', async () => {
  await using receiver = await Receiver.start();
  await subscribe('e', receiver.url);
  const [deleted, last] = [anEvent({ userId: 'u' }), anEvent()];
  const { isRead, answer } = answerLate('stream_events');
  await query.store('e', [deleted]);
  await isRead;
  await deleteUser('e', 'u', false);
  await query.store('e', [last]);
  answer();
  await eventually(() => receiver.uuids).toContain(last.uuid);
  expect(receiver.uuids).toEqual([last.uuid]);
});

test('an event is not sent whose user is deleted while ClickHouse takes its time to say that it is not', async () => {
  const { receiver, answer } = await holdingReceiver();
  await using _receiver = receiver;
  await subscribe('f', receiver.url);
  const [first, deleted, last] = [anEvent(), anEvent({ userId: 'u' }), anEvent()];
  await query.store('f', [first]);
  await isFirstHeld(receiver);
  await storeRead('f', [deleted]);
  // Long enough for the deletions to be looked up again before the attempt.
  await sleep(DELETIONS_FORGOTTEN_MS);
  const lookUp = answerLate('entity_deletions');
  answer();
  await lookUp.isRead;
  await deleteUser('f', 'u', false);
  await query.store('f', [last]);
  lookUp.answer();
  await eventually(() => receiver.uuids).toContain(last.uuid);
  expect(receiver.uuids).toEqual(ids([first, last]));
});
