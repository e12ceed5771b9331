import { setTimeout as delay } from 'node:timers/promises';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  clientsNamed,
  expectDeliveredStored,
  expectSentAgain,
  posthogUnder,
  runClients,
  runPosthogClient,
  STEP_INDEXES,
  someStored,
  startForClients,
  storedIndexes,
} from '../kit/clients/client-faults.ts';
import { keyOf } from '../kit/clients/clients.ts';
import { posthogKeyOf } from '../kit/clients/posthog/clients.ts';
import { ownKafka } from '../kit/engines.ts';
import { freeze } from '../kit/freeze.ts';
import type { Pipeline } from '../kit/pipeline.ts';

const CALLS = 60;

let kafka: LocalKafka & AsyncDisposable;
let pipeline: Pipeline;

beforeAll(async () => {
  kafka = await ownKafka();
  pipeline = await startForClients(kafka.brokers);
});
afterAll(async () => {
  await pipeline?.stop();
  await kafka?.[Symbol.asyncDispose]();
});

test("the first responses of each version of PostHog's clients are lost: it sends again, and each event is stored once", async () => {
  await expectSentAgain(pipeline, posthogUnder('lost'), 2);
});

test('Kafka does not respond for five seconds while clients send: nothing is lost, nothing is stored twice', async () => {
  const clients = clientsNamed('segment-analytics-node-1.3.0', 'segment-analytics-node-3.0.0');
  const ofPosthog = posthogUnder('frozen');
  const { url } = pipeline.services['ingest-api'];
  const running = Promise.all([
    runClients(clients, url, CALLS),
    Promise.all(ofPosthog.map((client) => runPosthogClient(pipeline, client, url))),
  ]);
  await someStored(pipeline, [...clients.map(keyOf), ...ofPosthog.map(posthogKeyOf)]);
  const thaw = freeze(kafka.pids[0] ?? -1);
  await delay(5_000);
  thaw();
  const [outcomes, outcomesOfPosthog] = await running;
  const indexes = Array.from({ length: CALLS }, (_, index) => index);
  for (const { errors, log, delivered } of outcomes) {
    expect([errors, log, delivered.toSorted((a, b) => a - b)]).toEqual([[], '', indexes]);
  }
  for (const { errors } of outcomesOfPosthog) expect(errors).toEqual([]);
  await pipeline.drained();
  for (const client of clients) expect(await storedIndexes(pipeline, keyOf(client))).toEqual(indexes);
  for (const client of ofPosthog) {
    expect([client.name, await storedIndexes(pipeline, posthogKeyOf(client))]).toEqual([client.name, STEP_INDEXES]);
  }
});

test('ingest-api is killed three times before its responses arrive: what clients report as delivered is stored, and nothing twice', async () => {
  const clients = clientsNamed('segment-analytics-node-3.1.0', 'rudder-sdk-node-3.0.13', 'rudder-python-2.1.9');
  await expectDeliveredStored(pipeline, clients, { kills: 3, count: 3 * CALLS });
});

test("ingest-api is killed while PostHog's clients send: what they report as delivered is stored, and nothing twice", async () => {
  const clients = posthogUnder('killed').filter(({ runsIn }) => runsIn.platform !== 'browser');
  const { url } = pipeline.services['ingest-api'];
  const running = Promise.all(clients.map((client) => runPosthogClient(pipeline, client, url)));
  await someStored(pipeline, clients.map(posthogKeyOf));
  await pipeline.services['ingest-api'].kill9();
  await pipeline.restart('ingest-api');
  const outcomes = await running;
  await pipeline.drained();
  for (const [place, client] of clients.entries()) {
    const stored = await storedIndexes(pipeline, posthogKeyOf(client));
    expect([client.name, stored]).toEqual([client.name, [...new Set(stored)]]);
    // How many a client gives up depends on how long a restart takes, beside what else the machine does.
    expect(stored.length).toBeGreaterThan(0);
    if (outcomes[place]?.errors.length === 0) expect([client.name, stored]).toEqual([client.name, STEP_INDEXES]);
  }
});
