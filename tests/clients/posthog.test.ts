import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { PAGE } from '../kit/clients/clients.ts';
import { POSTHOG_CLIENTS, posthogKeyOf } from '../kit/clients/posthog/clients.ts';
import { runPosthog } from '../kit/clients/posthog/run.ts';
import { countedSteps, STEPS } from '../kit/clients/posthog/steps.ts';
import { eventsOf, expectPosthogStored, storeBefore } from '../kit/clients/posthog/stored.ts';
import { startRecorder } from '../kit/clients/recording.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import type { EventPage } from '../kit/records.ts';

/** Set by `npm run test:clients -- --record`. */
const RECORD = process.env['SLUICE_RECORD_CLIENTS'] === 'true';

let pipeline: Pipeline;

beforeAll(async () => {
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'posthogclients',
    keys: Object.fromEntries(POSTHOG_CLIENTS.map((client) => [client.name, posthogKeyOf(client)])),
    env: { CORS_ORIGINS: PAGE.origin },
  });
});
afterAll(() => pipeline?.stop());

test.each(POSTHOG_CLIENTS)('$name: each event is stored once with its exact content', async (client) => {
  await storeBefore(pipeline, client);
  await using recorder = await startRecorder(pipeline.services['ingest-api'].url);
  const { url } = RECORD ? recorder : pipeline.services['ingest-api'];
  const received = () => pipeline.settled(eventsOf(client), posthogKeyOf(client));
  const { errors, log, delivered } = await runPosthog(client, { url, received });
  expect([errors, log, delivered]).toEqual([[], '', [...STEPS.keys()]]);
  await pipeline.drained();
  await expectPosthogStored(pipeline, client);
  if (RECORD) await recorder.save(client.name);
});

test('a batch that is larger than ingest-api takes is sent in halves by posthog-node, and stored once', async () => {
  const clients = POSTHOG_CLIENTS.filter(({ runsIn }) => runsIn.platform === 'node');
  await using small = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'posthoghalves',
    keys: Object.fromEntries(clients.map((client) => [client.name, posthogKeyOf(client)])),
    // posthog-node sends three at once here.
    env: { EVENTS_PER_SUBMISSION_MAX: '2' },
  });
  const steps = countedSteps(9);
  const { url } = small.services['ingest-api'];
  for (const client of clients) {
    const { errors } = await runPosthog(client, { url, received: async () => undefined, steps });
    expect([client.name, errors]).toEqual([client.name, []]);
  }
  await small.drained();
  for (const client of clients) {
    const { body } = await small.get<EventPage>('/events?event=counted', posthogKeyOf(client));
    const indexes = body.results.map(({ properties }) => Number(properties['index'])).sort((a, b) => a - b);
    expect([client.name, indexes]).toEqual([client.name, [...steps.keys()]]);
  }
});
