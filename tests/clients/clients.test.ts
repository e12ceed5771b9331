import { beforeAll, test } from 'vitest';
import { CLIENTS, exceptOn, keyOf, newestOf } from '../kit/clients/clients.ts';
import { expectLiveStored } from '../kit/clients/live.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

// The newest version of each client but those of Java, with its usual options; tests/night/clients.test.ts runs all.

const NEWEST = newestOf(exceptOn(['java', 'recorded'], CLIENTS));

let tenant: Tenant;

beforeAll(async () => {
  tenant = await takeTenant('clients', Object.fromEntries(NEWEST.map((client) => [client.name, keyOf(client)])));
});

test.each(NEWEST)('$name: each call is stored once with its exact content', async (client) => {
  await expectLiveStored(tenant, client);
});
