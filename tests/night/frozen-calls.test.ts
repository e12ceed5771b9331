import { setTimeout as delay } from 'node:timers/promises';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { expectInTime, until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { countCalls, sendCalls, track } from '../kit/calls.ts';
import { ownKafka } from '../kit/engines.ts';
import { freeze } from '../kit/freeze.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';

const started = new AsyncDisposableStack();
let kafka: LocalKafka;
let pipeline: Pipeline;

beforeAll(async () => {
  kafka = started.use(await ownKafka());
  const options = { kafkaBrokers: kafka.brokers, clickhouseUrl: inject('clickhouseUrl'), name: 'frozencalls' };
  pipeline = started.use(await startPipeline(options));
});
afterAll(() => started.disposeAsync());

test('while Kafka does not respond for five seconds, a request waits, and nothing is sent twice', async () => {
  const thaw = freeze(kafka.pids[0] ?? -1);
  const sending = sendCalls(pipeline, [track('held', 0), track('held', 1)]);
  await delay(5_000);
  thaw();
  const { status, body, seconds } = await sending;
  expect([status, body]).toEqual([200, { success: true }]);
  expect(seconds).toBeGreaterThan(4.9);
  await until('both events', async () => (await countCalls(pipeline, 'held')) === 2);
});

test('a request waits for eight seconds at most, and what is sent again is stored once', async () => {
  const batch = [track('late', 0), track('late', 1)];
  const thaw = freeze(kafka.pids[0] ?? -1);
  try {
    const { status, body, seconds } = await sendCalls(pipeline, batch);
    expect([status, body]).toEqual([503, expect.objectContaining({ code: 'event_log_unavailable' })]);
    expect(seconds).toBeGreaterThan(7.9);
    // @segment/analytics-node gives up after ten.
    expectInTime('the request', seconds * 1_000, 9_500);
  } finally {
    thaw();
  }
  await until('it to be accepted', async () => (await sendCalls(pipeline, batch)).status === 200);
  await pipeline.drained();
  expect(await countCalls(pipeline, 'late')).toBe(2);
});
