import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { PAGE } from './clients.ts';
import { POSTHOG_CLIENTS, posthogKeyOf } from './posthog/clients.ts';
import { runPosthog } from './posthog/run.ts';
import { STEPS } from './posthog/steps.ts';
import { eventsOf, expectPosthogStored, storeBefore } from './posthog/stored.ts';
import { startRecorder } from './recording.ts';

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
