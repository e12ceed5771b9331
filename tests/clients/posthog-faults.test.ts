import { setTimeout as delay } from 'node:timers/promises';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { PAGE } from '../kit/clients/clients.ts';
import { POSTHOG_CLIENTS, type PosthogClient, posthogKeyOf } from '../kit/clients/posthog/clients.ts';
import { runPosthog } from '../kit/clients/posthog/run.ts';
import { countedSteps } from '../kit/clients/posthog/steps.ts';
import { ownKafka } from '../kit/engines.ts';
import { freeze } from '../kit/freeze.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { startProxy } from '../kit/proxy.ts';
import type { EventPage } from '../kit/records.ts';

const STEPS = countedSteps(40);
const INDEXES = [...STEPS.keys()];
const PACE_MS = 150;

/** One of each kind: those that make uuids, that which makes none, and the page. */
const CLIENTS = POSTHOG_CLIENTS.filter(
  ({ name }) => name.startsWith('posthog-node') || name.startsWith('posthog-python') || name === 'posthog-js-1.449.2',
);

let kafka: LocalKafka & AsyncDisposable;
let pipeline: Pipeline;

/** The workspaces of each test are its own. */
const FAULTS = ['lost', 'frozen', 'killed'] as const;
type Fault = (typeof FAULTS)[number];
const under = (fault: Fault) =>
  CLIENTS.map((client): PosthogClient => ({ ...client, name: `${fault}-${client.name}` }));

beforeAll(async () => {
  kafka = await ownKafka();
  pipeline = await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'posthogfaults',
    keys: Object.fromEntries(FAULTS.flatMap(under).map((client) => [client.name, posthogKeyOf(client)])),
    env: { CORS_ORIGINS: PAGE.origin },
  });
});
afterAll(async () => {
  await pipeline?.stop();
  await kafka?.[Symbol.asyncDispose]();
});

/** The indexes of the events of a client that are stored, one for each event. */
async function storedIndexes(client: PosthogClient): Promise<number[]> {
  const { body } = await pipeline.get<EventPage>('/events?event=counted&limit=1000', posthogKeyOf(client));
  return body.results.map(({ properties }) => Number(properties['index'])).sort((a, b) => a - b);
}

function run(client: PosthogClient, url: string) {
  const received = () => pipeline.settled(STEPS.length, posthogKeyOf(client));
  return runPosthog(client, { url, received, steps: STEPS, paceMs: PACE_MS, withFaults: true });
}

test('the first responses of each client are lost: it sends again, and each event is stored once', async () => {
  const clients = under('lost');
  await Promise.all(
    clients.map(async (client) => {
      let responses = 0;
      await using proxy = await startProxy(pipeline.services['ingest-api'].url, () => {
        responses += 1;
        return responses <= 2 ? 'cut' : 'deliver';
      });
      const { errors } = await run(client, proxy.url);
      expect([client.name, errors, proxy.lost]).toEqual([client.name, [], 2]);
    }),
  );
  await pipeline.drained();
  for (const client of clients) expect([client.name, await storedIndexes(client)]).toEqual([client.name, INDEXES]);
});

test('Kafka does not respond for five seconds: nothing is lost, nothing is stored twice', async () => {
  const clients = under('frozen');
  const { url } = pipeline.services['ingest-api'];
  const running = Promise.all(clients.map((client) => run(client, url)));
  for (const client of clients) {
    await until(`events of ${client.name}`, async () => (await storedIndexes(client)).length > 0);
  }
  const thaw = freeze(kafka.pids[0] ?? -1);
  await delay(5_000);
  thaw();
  for (const { errors } of await running) expect(errors).toEqual([]);
  await pipeline.drained();
  for (const client of clients) expect([client.name, await storedIndexes(client)]).toEqual([client.name, INDEXES]);
});

test('ingest-api is killed while clients send: what they report as delivered is stored, and nothing twice', async () => {
  const clients = under('killed').filter(({ runsIn }) => runsIn.platform !== 'browser');
  const { url } = pipeline.services['ingest-api'];
  const running = Promise.all(clients.map((client) => run(client, url)));
  for (const client of clients) {
    await until(`events of ${client.name}`, async () => (await storedIndexes(client)).length > 0);
  }
  await pipeline.services['ingest-api'].kill9();
  await pipeline.restart('ingest-api');
  const outcomes = await running;
  await pipeline.drained();
  for (const [place, client] of clients.entries()) {
    const stored = await storedIndexes(client);
    expect([client.name, stored]).toEqual([client.name, [...new Set(stored)]]);
    // How many a client gives up depends on how long a restart takes, beside what else the machine does.
    expect(stored.length).toBeGreaterThan(0);
    if (outcomes[place]?.errors.length === 0) expect([client.name, stored]).toEqual([client.name, INDEXES]);
  }
});
