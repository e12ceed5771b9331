import { beforeAll, test } from 'vitest';
import { CLIENTS, exceptOn, keyOf } from '../kit/clients/clients.ts';
import { installJavaClients } from '../kit/clients/installation.ts';
import { expectLiveStored } from '../kit/clients/live.ts';
import { POSTHOG_CLIENTS, posthogKeyOf } from '../kit/clients/posthog/clients.ts';
import { expectHalvesStored, expectPosthogLiveStored } from '../kit/clients/posthog/live.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

// Every version of each client. With SLUICE_RECORD_CLIENTS=true their requests are recorded, which tests/docs sends again.

let tenant: Tenant;

beforeAll(async () => {
  await installJavaClients(
    [...CLIENTS, ...POSTHOG_CLIENTS].flatMap(({ runsIn }) => (runsIn.platform === 'java' ? [runsIn.jars] : [])),
  );
  tenant = await takeTenant('clients', {
    ...Object.fromEntries(CLIENTS.map((client) => [client.name, keyOf(client)])),
    ...Object.fromEntries(POSTHOG_CLIENTS.map((client) => [client.name, posthogKeyOf(client)])),
  });
});

test.each(exceptOn(['recorded'], CLIENTS))('$name: each call is stored once with its exact content', async (client) => {
  await expectLiveStored(tenant, client);
});

test.each(exceptOn(['recorded'], POSTHOG_CLIENTS))(
  '$name: each event is stored once with its exact content',
  async (client) => {
    await expectPosthogLiveStored(tenant, client);
  },
);

test('a batch that is larger than ingest-api takes is sent in halves by posthog-node, and stored once', async () => {
  await expectHalvesStored(tenant, POSTHOG_CLIENTS);
});
