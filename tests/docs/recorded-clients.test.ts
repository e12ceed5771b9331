// Sends the requests that clients of others made, byte for byte, without these clients.
import { beforeAll, expect, test } from 'vitest';
import { CLIENTS, keyOf, type ThirdPartyClient } from '../kit/clients/clients.ts';
import { expectDocumented } from '../kit/clients/documented-clients.ts';
import { callsIn, type RawResponse, readRecording, sendBytes } from '../kit/clients/recording.ts';
import { expectStored, storeEntities } from '../kit/clients/stored.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

/** What a client wrote of a call that is compared with what is stored. */
interface SentCall {
  readonly messageId: string;
  readonly timestamp?: string;
  readonly originalTimestamp?: string;
  readonly context?: Record<string, unknown>;
}

let pipeline: Tenant;

beforeAll(async () => {
  const keys = Object.fromEntries(CLIENTS.map((client) => [client.name, keyOf(client)]));
  pipeline = await takeTenant('recorded', keys);
  await Promise.all(CLIENTS.map((client) => storeEntities(pipeline, client)));
  await sendEverything();
});

/** Sends all requests of every client, in their order, and waits until they are stored. */
async function sendEverything(): Promise<void> {
  await Promise.all(
    CLIENTS.map(async ({ name }) => {
      for (const bytes of await readRecording(name)) {
        expectResponse(bytes, await sendBytes(pipeline.services['ingest-api'].url, bytes));
      }
    }),
  );
  await pipeline.drained();
}

function expectResponse(request: Buffer, { status, headers, body }: RawResponse): void {
  const method = request.toString('latin1', 0, request.indexOf(' '));
  const origin = /^origin: (.*)\r$/im.exec(request.toString('latin1'))?.[1];
  expect(headers['access-control-allow-origin']).toBe(origin);
  if (method === 'POST') expect([status, body]).toEqual([200, '{"success":true}']);
  else if (method === 'OPTIONS') expect([status, body]).toEqual([204, '']);
  else expect([status, JSON.parse(body)]).toEqual([200, expect.objectContaining({ source: expect.anything() })]);
}

async function expectAsSent(client: ThirdPartyClient): Promise<void> {
  const events = await expectStored(pipeline, client);
  for (const { messageId, timestamp, originalTimestamp, context } of callsIn<SentCall>(
    await readRecording(client.name),
  )) {
    const stored = events.find(({ uuid, context }) => (context['messageId'] ?? uuid) === messageId);
    expect(stored?.timestamp).toBe(new Date(timestamp ?? originalTimestamp ?? Number.NaN).toISOString());
    // That of a request is for all of its calls, and compared by expectStored.
    if (!context) continue;
    const { messageId: _, ...storedContext } = stored?.context ?? {};
    expect(storedContext).toEqual(context);
  }
}

test.each(CLIENTS)('$name sends its calls where it should', async ({ name, paths }) => {
  const starts = (await readRecording(name)).map((bytes) => bytes.toString('latin1', 0, bytes.indexOf('\r\n')));
  const sentTo = starts.flatMap((start) => /^POST ([^ ?]+)/.exec(start)?.slice(1) ?? []);
  expect(new Set(sentTo)).toEqual(new Set(paths));
});

test.concurrent.each(CLIENTS)('the requests of $name are stored as they were sent', async (client) => {
  await expectAsSent(client);
});

test('the same requests again are stored once', async () => {
  await sendEverything();
  await Promise.all(CLIENTS.map(expectAsSent));
});

test('docs/design/clients.md says how many calls each client made, and what became of them', async () => {
  await expectDocumented(
    pipeline,
    CLIENTS.map((client) => ({ ...client, key: keyOf(client) })),
    (name) => !name.startsWith('posthog'),
  );
});
