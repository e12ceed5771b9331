import { expect } from 'vitest';
import type { EventPage } from '../../records.ts';
import type { Tenant } from '../../shared-pipeline.ts';
import { RECORD } from '../live.ts';
import { startRecorder } from '../recording.ts';
import { type PosthogClient, posthogKeyOf } from './clients.ts';
import { runPosthog } from './run.ts';
import { countedSteps, STEPS } from './steps.ts';
import { eventsOf, expectPosthogStored, storeBefore } from './stored.ts';

/** Runs a client, and expects that each of its events is stored once with its exact content. The tenant has its key. */
export async function expectPosthogLiveStored(tenant: Tenant, client: PosthogClient): Promise<void> {
  await storeBefore(tenant, client);
  await using recorder = await startRecorder(tenant.services['ingest-api'].url);
  const { url } = RECORD ? recorder : tenant.services['ingest-api'];
  const received = () => tenant.settled(eventsOf(client), posthogKeyOf(client));
  const { errors, log, delivered } = await runPosthog(client, { url, received });
  expect([errors, log, delivered]).toEqual([[], '', [...STEPS.keys()]]);
  await tenant.drained();
  await expectPosthogStored(tenant, client);
  if (RECORD) await recorder.save(client.name);
}

/** Expects that clients of Node.js send in halves what ingest-api takes no whole, and that it is stored once. */
export async function expectHalvesStored(tenant: Tenant, clients: readonly PosthogClient[]): Promise<void> {
  // posthog-node sends three at once here.
  const small = await tenant.startAnother('ingest-api', { EVENTS_PER_SUBMISSION_MAX: '2' });
  const steps = countedSteps(9);
  const nodeClients = clients.filter(({ runsIn }) => runsIn.platform === 'node');
  try {
    for (const client of nodeClients) {
      const { errors } = await runPosthog(client, { url: small.url, received: async () => undefined, steps });
      expect([client.name, errors]).toEqual([client.name, []]);
    }
  } finally {
    await small.kill9();
  }
  await tenant.drained();
  for (const client of nodeClients) {
    const { body } = await tenant.get<EventPage>('/events?event=counted', posthogKeyOf(client));
    const indexes = body.results.map(({ properties }) => Number(properties['index'])).sort((a, b) => a - b);
    expect([client.name, indexes]).toEqual([client.name, [...steps.keys()]]);
  }
}
