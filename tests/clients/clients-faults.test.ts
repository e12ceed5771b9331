import { setTimeout as delay } from 'node:timers/promises';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { trackCalls, USER } from '../kit/clients/calls.ts';
import { CLIENTS, keyOf, PAGE, type ThirdPartyClient } from '../kit/clients/clients.ts';
import { POSTHOG_CLIENTS, type PosthogClient, posthogKeyOf } from '../kit/clients/posthog/clients.ts';
import { runPosthog } from '../kit/clients/posthog/run.ts';
import { countedSteps } from '../kit/clients/posthog/steps.ts';
import { runClient } from '../kit/clients/run-client.ts';
import { ownKafka } from '../kit/engines.ts';
import { freeze } from '../kit/freeze.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { startProxy } from '../kit/proxy.ts';
import type { EventPage } from '../kit/records.ts';

const CALLS = 60;
const PACE_MS = 200;

const STEPS = countedSteps(40);
const INDEXES = [...STEPS.keys()];
const STEP_PACE_MS = 150;

/** The clients of Node.js and Python: the test knows what they report as delivered. */
const clientsNamed = (...names: string[]): ThirdPartyClient[] =>
  names.map((name) => {
    const client = CLIENTS.find((each) => each.name === name);
    if (!client) throw new Error(`there is no client ${name}`);
    return client;
  });

/** One client of each kind of PostHog's: those that make uuids, that which makes none, and the page. */
const OF_POSTHOG = POSTHOG_CLIENTS.filter(
  ({ name }) => name.startsWith('posthog-node') || name.startsWith('posthog-python') || name === 'posthog-js-1.449.2',
);

/** Each test has workspaces of its own for PostHog's clients. */
const FAULTS = ['lost', 'frozen', 'killed'] as const;
type Fault = (typeof FAULTS)[number];
const posthogUnder = (fault: Fault) =>
  OF_POSTHOG.map((client): PosthogClient => ({ ...client, name: `${fault}-${client.name}` }));

let kafka: LocalKafka & AsyncDisposable;
let pipeline: Pipeline;

beforeAll(async () => {
  kafka = await ownKafka();
  pipeline = await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'clientfaults',
    keys: Object.fromEntries([
      ...CLIENTS.map((client) => [client.name, keyOf(client)]),
      ...FAULTS.flatMap(posthogUnder).map((client) => [client.name, posthogKeyOf(client)]),
    ]),
    env: { CORS_ORIGINS: PAGE.origin },
  });
});
afterAll(async () => {
  await pipeline?.stop();
  await kafka?.[Symbol.asyncDispose]();
});

/** The indexes of what a client has sent and is stored, one for each event. */
async function storedIndexes(key: string): Promise<number[]> {
  const { body } = await pipeline.get<EventPage>('/events?event=counted&limit=1000', key);
  return body.results.map(({ properties }) => Number(properties['index'])).sort((a, b) => a - b);
}

async function someStored(keys: readonly string[]): Promise<void> {
  for (const key of keys) await until(`events of ${key}`, async () => (await storedIndexes(key)).length > 0);
}

function runPosthogClient(client: PosthogClient, url: string) {
  const received = () => pipeline.settled(STEPS.length, posthogKeyOf(client));
  return runPosthog(client, { url, received, steps: STEPS, paceMs: STEP_PACE_MS, withFaults: true });
}

test("the first responses of each of PostHog's clients are lost: it sends again, and each event is stored once", async () => {
  const clients = posthogUnder('lost');
  await Promise.all(
    clients.map(async (client) => {
      let responses = 0;
      await using proxy = await startProxy(pipeline.services['ingest-api'].url, () => {
        responses += 1;
        return responses <= 2 ? 'cut' : 'deliver';
      });
      const { errors } = await runPosthogClient(client, proxy.url);
      expect([client.name, errors, proxy.lost]).toEqual([client.name, [], 2]);
    }),
  );
  await pipeline.drained();
  for (const client of clients)
    expect([client.name, await storedIndexes(posthogKeyOf(client))]).toEqual([client.name, INDEXES]);
});

test('Kafka does not respond for five seconds while clients send: nothing is lost, nothing is stored twice', async () => {
  const clients = clientsNamed('segment-analytics-node-1.3.0', 'segment-analytics-node-3.0.0');
  const ofPosthog = posthogUnder('frozen');
  const { url } = pipeline.services['ingest-api'];
  const calls = trackCalls(CALLS, USER);
  const running = Promise.all([
    Promise.all(clients.map((client) => runClient(client, { url, calls, paceMs: PACE_MS }))),
    Promise.all(ofPosthog.map((client) => runPosthogClient(client, url))),
  ]);
  await someStored([...clients.map(keyOf), ...ofPosthog.map(posthogKeyOf)]);
  const thaw = freeze(kafka.pids[0] ?? -1);
  await delay(5_000);
  thaw();
  const [outcomes, outcomesOfPosthog] = await running;
  const indexes = [...calls.keys()];
  for (const { errors, log, delivered } of outcomes) {
    expect([errors, log, delivered.toSorted((a, b) => a - b)]).toEqual([[], '', indexes]);
  }
  for (const { errors } of outcomesOfPosthog) expect(errors).toEqual([]);
  await pipeline.drained();
  for (const client of clients) expect(await storedIndexes(keyOf(client))).toEqual(indexes);
  for (const client of ofPosthog) {
    expect([client.name, await storedIndexes(posthogKeyOf(client))]).toEqual([client.name, INDEXES]);
  }
});

test('ingest-api is killed before its responses arrive: what clients report as delivered is stored, and nothing twice', async () => {
  const clients = clientsNamed('segment-analytics-node-3.1.0', 'rudder-sdk-node-3.0.13', 'rudder-python-2.1.9');
  let [responses, kills] = [0, 0];
  let restarted: Promise<void> | undefined;
  await using proxy = await startProxy(pipeline.services['ingest-api'].url, () => {
    if (restarted || kills === 3) return 'deliver';
    // Since the last restart.
    responses += 1;
    if (responses < 8) return 'deliver';
    responses = 0;
    kills += 1;
    restarted = pipeline.services['ingest-api']
      .kill9()
      .then(() => pipeline.restart('ingest-api'))
      .finally(() => {
        restarted = undefined;
      });
    return 'cut';
  });
  // So many that there are responses after three restarts of a busy machine.
  const calls = trackCalls(3 * CALLS, USER);
  const outcomes = await Promise.all(
    clients.map((client) => runClient(client, { url: proxy.url, calls, paceMs: PACE_MS })),
  );
  await restarted;
  expect([kills, proxy.lost]).toEqual([3, 3]);
  await pipeline.drained();
  for (const [place, client] of clients.entries()) {
    const { delivered = [] } = outcomes[place] ?? {};
    const stored = await storedIndexes(keyOf(client));
    expect(stored).toEqual([...new Set(stored)]);
    expect(stored).toEqual(expect.arrayContaining([...delivered]));
    // How many a client gives up depends on how long a restart takes, beside what else the machine does.
    expect(delivered.length).toBeGreaterThan(0);
  }
});

test("ingest-api is killed while PostHog's clients send: what they report as delivered is stored, and nothing twice", async () => {
  const clients = posthogUnder('killed').filter(({ runsIn }) => runsIn.platform !== 'browser');
  const { url } = pipeline.services['ingest-api'];
  const running = Promise.all(clients.map((client) => runPosthogClient(client, url)));
  await someStored(clients.map(posthogKeyOf));
  await pipeline.services['ingest-api'].kill9();
  await pipeline.restart('ingest-api');
  const outcomes = await running;
  await pipeline.drained();
  for (const [place, client] of clients.entries()) {
    const stored = await storedIndexes(posthogKeyOf(client));
    expect([client.name, stored]).toEqual([client.name, [...new Set(stored)]]);
    // How many a client gives up depends on how long a restart takes, beside what else the machine does.
    expect(stored.length).toBeGreaterThan(0);
    if (outcomes[place]?.errors.length === 0) expect([client.name, stored]).toEqual([client.name, INDEXES]);
  }
});
