// Sends the requests that PostHog's clients made, byte for byte, without these clients.
import { beforeAll, expect, test } from 'vitest';
import { expectDocumented } from '../kit/clients/documented-clients.ts';
import { POSTHOG_CLIENTS, type PosthogClient, posthogKeyOf } from '../kit/clients/posthog/clients.ts';
import { expectPosthogStored, storeBefore } from '../kit/clients/posthog/stored.ts';
import { readRecording, sendBytes } from '../kit/clients/recording.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

let pipeline: Tenant;

beforeAll(async () => {
  const keys = Object.fromEntries(POSTHOG_CLIENTS.map((client) => [client.name, posthogKeyOf(client)]));
  pipeline = await takeTenant('posthogrecorded', keys);
  await Promise.all(POSTHOG_CLIENTS.map((client) => storeBefore(pipeline, client)));
  await sendEverything();
});

/** Sends all requests of every client, in their order, and waits until they are stored. */
async function sendEverything(): Promise<void> {
  await Promise.all(
    POSTHOG_CLIENTS.map(async (client) => {
      for (const bytes of await readRecording(client.name)) await expectTaken(client, bytes);
    }),
  );
  await pipeline.drained();
}

async function expectTaken({ path }: PosthogClient, request: Buffer): Promise<void> {
  const { status, headers, body } = await sendBytes(pipeline.services['ingest-api'].url, request);
  const text = request.toString('latin1');
  const [method = '', target = ''] = text.split(' ', 2);
  expect(headers['access-control-allow-origin']).toBe(/^origin: (.*)\r$/im.exec(text)?.[1]);
  if (method === 'OPTIONS') expect([status, body]).toEqual([204, '']);
  else if (target.startsWith(path)) expect([status, body]).toEqual([200, '{"status":1}']);
  else expect(status).toBe(200);
}

test.each(POSTHOG_CLIENTS)('$name sends its events where it should', async ({ name, path }) => {
  const starts = (await readRecording(name)).map((bytes) => bytes.toString('latin1', 0, bytes.indexOf('\r\n')));
  const sentTo = starts.flatMap((start) => /^POST ([^ ?]+)/.exec(start)?.slice(1) ?? []);
  expect(sentTo).toContain(path);
});

test.concurrent.each(POSTHOG_CLIENTS)('the requests of $name are stored as they were sent', async (client) => {
  await expectPosthogStored(pipeline, client);
});

test('the same requests again are stored once', async () => {
  await sendEverything();
  await Promise.all(POSTHOG_CLIENTS.map((client) => expectPosthogStored(pipeline, client)));
});

test('docs/design/clients.md says how many events each client of PostHog sent, and what became of them', async () => {
  await expectDocumented(
    pipeline,
    POSTHOG_CLIENTS.map((client) => ({ name: client.name, paths: [client.path], key: posthogKeyOf(client) })),
    (name) => name.startsWith('posthog'),
  );
});
