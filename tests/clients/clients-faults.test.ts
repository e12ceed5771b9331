import { afterAll, beforeAll, inject, test } from 'vitest';
import {
  clientsNamed,
  expectDeliveredStored,
  expectSentAgain,
  posthogUnder,
  startForClients,
} from '../kit/clients/client-faults.ts';
import type { Pipeline } from '../kit/pipeline.ts';

// tests/night/clients-faults.test.ts has more versions, longer runs and a Kafka that does not respond.

let pipeline: Pipeline;

beforeAll(async () => {
  pipeline = await startForClients(inject('kafkaBrokers'));
});
afterAll(() => pipeline?.stop());

test("the first response to each of PostHog's clients is lost: it sends again, and each event is stored once", async () => {
  const clients = posthogUnder('lost').filter(({ name }) => !name.endsWith('posthog-node-4.18.0'));
  await expectSentAgain(pipeline, clients, 1);
});

test('ingest-api is killed before a response arrives: what clients report as delivered is stored, and nothing twice', async () => {
  const clients = clientsNamed('segment-analytics-node-3.1.0', 'rudder-sdk-node-3.0.13', 'rudder-python-2.1.9');
  await expectDeliveredStored(pipeline, clients, { kills: 1, count: 30 });
});
