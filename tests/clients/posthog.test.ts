import { beforeAll, test } from 'vitest';
import { exceptOn, newestOf } from '../kit/clients/clients.ts';
import { POSTHOG_CLIENTS, posthogKeyOf } from '../kit/clients/posthog/clients.ts';
import { expectHalvesStored, expectPosthogLiveStored } from '../kit/clients/posthog/live.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

// The newest version of each client but those of Java, with its usual options; tests/night/clients.test.ts runs all.

const NEWEST = newestOf(exceptOn(['java', 'recorded'], POSTHOG_CLIENTS));

let tenant: Tenant;

beforeAll(async () => {
  const keys = Object.fromEntries(NEWEST.map((client) => [client.name, posthogKeyOf(client)]));
  tenant = await takeTenant('posthogclients', keys);
});

test.each(NEWEST)('$name: each event is stored once with its exact content', async (client) => {
  await expectPosthogLiveStored(tenant, client);
});

test('a batch that is larger than ingest-api takes is sent in halves by posthog-node, and stored once', async () => {
  await expectHalvesStored(tenant, NEWEST);
});
