import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type QueryService, startQuery } from '../testing/query-service.ts';
import { someEvents } from '../testing/streams.ts';
import { manage, Receiver, subscribe, uuidsOf, WEBHOOKS_ENV } from '../testing/webhooks.ts';
import { BATCH_BYTES_MAX } from './delivery.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ENV);
});
afterAll(() => query.stop());

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
