import { setTimeout as delay } from 'node:timers/promises';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { trackCalls, USER } from '../kit/clients/calls.ts';
import { CLIENTS, keyOf, type ThirdPartyClient } from '../kit/clients/clients.ts';
import { runClient } from '../kit/clients/run-client.ts';
import { ownKafka } from '../kit/engines.ts';
import { freeze } from '../kit/freeze.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { startProxy } from '../kit/proxy.ts';
import type { EventPage } from '../kit/records.ts';

const CALLS = 60;
const PACE_MS = 200;

/** Those of Node.js and Python, of which the test knows what they report as delivered. */
const clientsNamed = (...names: string[]): ThirdPartyClient[] =>
  names.map((name) => {
    const client = CLIENTS.find((each) => each.name === name);
    if (!client) throw new Error(`there is no client ${name}`);
    return client;
  });

let kafka: LocalKafka & AsyncDisposable;
let pipeline: Pipeline;

beforeAll(async () => {
  kafka = await ownKafka();
  pipeline = await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'clientfaults',
    keys: Object.fromEntries(CLIENTS.map((client) => [client.name, keyOf(client)])),
  });
});
afterAll(async () => {
  await pipeline?.stop();
  await kafka?.[Symbol.asyncDispose]();
});

/** The indexes of the calls of a client that are stored, one for each event. */
async function storedIndexes(client: ThirdPartyClient): Promise<unknown[]> {
  const { body } = await pipeline.get<EventPage>('/events?event=counted&limit=1000', keyOf(client));
  return body.results.map(({ properties }) => properties['index']).sort((a, b) => Number(a) - Number(b));
}

async function someStored(clients: readonly ThirdPartyClient[]): Promise<void> {
  for (const client of clients) {
    await until(`calls of ${client.name}`, async () => (await storedIndexes(client)).length > 0);
  }
}

test('Kafka does not respond for five seconds while analytics-node sends: nothing is lost, nothing is stored twice', async () => {
  const clients = clientsNamed('segment-analytics-node-1.3.0', 'segment-analytics-node-3.0.0');
  const { url } = pipeline.services['ingest-api'];
  const calls = trackCalls(CALLS, USER);
  const running = Promise.all(clients.map((client) => runClient(client, { url, calls, paceMs: PACE_MS })));
  await someStored(clients);
  const thaw = freeze(kafka.pids[0] ?? -1);
  await delay(5_000);
  thaw();
  const indexes = [...calls.keys()];
  for (const { errors, log, delivered } of await running) {
    expect([errors, log, delivered.toSorted((a, b) => a - b)]).toEqual([[], '', indexes]);
  }
  await pipeline.drained();
  for (const client of clients) expect(await storedIndexes(client)).toEqual(indexes);
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
    const stored = await storedIndexes(client);
    expect(stored).toEqual([...new Set(stored)]);
    expect(stored).toEqual(expect.arrayContaining([...delivered]));
    // How many a client gives up depends on how long a restart takes, beside what else the machine does.
    expect(delivered.length).toBeGreaterThan(0);
  }
});
