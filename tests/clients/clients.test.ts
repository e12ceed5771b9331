import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { CLIENTS, keyOf, PAGE } from '../kit/clients/clients.ts';
import { startRecorder } from '../kit/clients/recording.ts';
import { runClient } from '../kit/clients/run-client.ts';
import { expectStored, storeEntities } from '../kit/clients/stored.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';

/** Set by `npm run test:clients -- --record`. */
const RECORD = process.env['SLUICE_RECORD_CLIENTS'] === 'true';

/** An event without a timestamp of its own was made this long before it was received, at most. */
const RUN_MS_MAX = 240_000;

let pipeline: Pipeline;

beforeAll(async () => {
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'clients',
    keys: Object.fromEntries(CLIENTS.map((client) => [client.name, keyOf(client)])),
    env: { CORS_ORIGINS: PAGE.origin },
  });
});
afterAll(() => pipeline?.stop());

test.each(CLIENTS)('$name: each call is stored once with its exact content', async (client) => {
  await storeEntities(pipeline, client);
  await using recorder = await startRecorder(pipeline.services['ingest-api'].url);
  const { url } = RECORD ? recorder : pipeline.services['ingest-api'];
  const { errors, log, delivered } = await runClient(client, {
    url,
    received: () => pipeline.settled(client.calls.length, keyOf(client)),
  });
  // analytics-node 3.1.0 sends several batches at a time.
  expect([errors, log, delivered.toSorted((a, b) => a - b)]).toEqual([[], '', [...client.calls.keys()]]);
  await pipeline.drained();
  const events = await expectStored(pipeline, client);
  for (const [index, { timestamp }] of client.calls.entries()) {
    const { timestamp: stored = '', receivedAt = '' } = events[index] ?? {};
    if (!timestamp) expect(Date.parse(receivedAt) - Date.parse(stored)).toBeLessThan(RUN_MS_MAX);
  }
  if (RECORD) await recorder.save(client.name);
});
