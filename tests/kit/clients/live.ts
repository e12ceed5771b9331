import { expect } from 'vitest';
import type { Tenant } from '../shared-pipeline.ts';
import { keyOf, type ThirdPartyClient } from './clients.ts';
import { startRecorder } from './recording.ts';
import { runClient } from './run-client.ts';
import { expectStored, storeEntities } from './stored.ts';

/** Set to record the requests of the clients: `SLUICE_RECORD_CLIENTS=true npm run test:night -- tests/night/clients`. */
export const RECORD = process.env['SLUICE_RECORD_CLIENTS'] === 'true';

/** An event without a timestamp of its own was made this long before it was received, at most. */
const RUN_MS_MAX = 240_000;

/** Runs a client, and expects that each of its calls is stored once with its exact content. The tenant has its key. */
export async function expectLiveStored(tenant: Tenant, client: ThirdPartyClient): Promise<void> {
  await storeEntities(tenant, client);
  await using recorder = await startRecorder(tenant.services['ingest-api'].url);
  const { url } = RECORD ? recorder : tenant.services['ingest-api'];
  const { errors, log, delivered } = await runClient(client, {
    url,
    received: () => tenant.settled(client.calls.length, keyOf(client)),
  });
  // analytics-node 3.1.0 sends several batches at a time.
  expect([errors, log, delivered.toSorted((a, b) => a - b)]).toEqual([[], '', [...client.calls.keys()]]);
  await tenant.drained();
  const events = await expectStored(tenant, client);
  for (const [index, { timestamp }] of client.calls.entries()) {
    const { timestamp: stored = '', receivedAt = '' } = events[index] ?? {};
    if (!timestamp) expect(Date.parse(receivedAt) - Date.parse(stored)).toBeLessThan(RUN_MS_MAX);
  }
  if (RECORD) await recorder.save(client.name);
}
