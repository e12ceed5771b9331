import { until } from '@sluice/shared/testing/until';
import { expect, inject } from 'vitest';
import { type Pipeline, startPipeline } from '../pipeline.ts';
import { startProxy } from '../proxy.ts';
import type { EventPage } from '../records.ts';
import { trackCalls, USER } from './calls.ts';
import { CLIENTS, keyOf, PAGE, type ThirdPartyClient } from './clients.ts';
import { POSTHOG_CLIENTS, type PosthogClient, posthogKeyOf } from './posthog/clients.ts';
import { runPosthog } from './posthog/run.ts';
import { countedSteps } from './posthog/steps.ts';
import { runClient } from './run-client.ts';

const PACE_MS = 200;

const STEPS = countedSteps(40);
const STEP_PACE_MS = 150;

/** The indexes of what each of PostHog's clients sends. */
export const STEP_INDEXES = [...STEPS.keys()];

/** Each test has workspaces of its own for PostHog's clients. */
const FAULTS = ['lost', 'frozen', 'killed'] as const;
type Fault = (typeof FAULTS)[number];

/** Returns clients by their names. */
export function clientsNamed(...names: readonly string[]): ThirdPartyClient[] {
  return names.map((name) => {
    const client = CLIENTS.find((each) => each.name === name);
    if (!client) throw new Error(`there is no client ${name}`);
    return client;
  });
}

/** One client of each kind of PostHog's: those that make uuids, that which makes none, and the page. */
export function posthogUnder(fault: Fault): PosthogClient[] {
  return POSTHOG_CLIENTS.filter(
    ({ name }) => name.startsWith('posthog-node') || name.startsWith('posthog-python') || name === 'posthog-js-1.449.2',
  ).map((client) => ({ ...client, name: `${fault}-${client.name}` }));
}

/** Starts a pipeline that has the workspaces of all clients. */
export async function startForClients(kafkaBrokers: readonly string[]): Promise<Pipeline> {
  return await startPipeline({
    kafkaBrokers,
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'clientfaults',
    keys: Object.fromEntries([
      ...CLIENTS.map((client) => [client.name, keyOf(client)]),
      ...FAULTS.flatMap(posthogUnder).map((client) => [client.name, posthogKeyOf(client)]),
    ]),
    env: { CORS_ORIGINS: PAGE.origin },
  });
}

/** Returns the indexes of what a client has sent and is stored, one for each event. */
export async function storedIndexes(pipeline: Pipeline, key: string): Promise<number[]> {
  const { body } = await pipeline.get<EventPage>('/events?event=counted&limit=1000', key);
  return body.results.map(({ properties }) => Number(properties['index'])).sort((a, b) => a - b);
}

export async function someStored(pipeline: Pipeline, keys: readonly string[]): Promise<void> {
  for (const key of keys) await until(`events of ${key}`, async () => (await storedIndexes(pipeline, key)).length > 0);
}

/** Runs clients, each of which makes `count` calls. */
export async function runClients(clients: readonly ThirdPartyClient[], url: string, count: number) {
  const calls = trackCalls(count, USER);
  return await Promise.all(clients.map((client) => runClient(client, { url, calls, paceMs: PACE_MS })));
}

/** Runs a client of PostHog, which sends the events of {@link STEP_INDEXES}. */
export async function runPosthogClient(pipeline: Pipeline, client: PosthogClient, url: string, paceMs = STEP_PACE_MS) {
  const received = () => pipeline.settled(STEPS.length, posthogKeyOf(client));
  return await runPosthog(client, { url, received, steps: STEPS, paceMs, withFaults: true });
}

/** Loses the first `count` responses to each of PostHog's clients. Expects that it sends again, and each event is stored once. */
export async function expectSentAgain(
  pipeline: Pipeline,
  clients: readonly PosthogClient[],
  count: number,
): Promise<void> {
  await Promise.all(
    clients.map(async (client) => {
      let responses = 0;
      await using proxy = await startProxy(pipeline.services['ingest-api'].url, () => {
        responses += 1;
        return responses <= count ? 'cut' : 'deliver';
      });
      const { errors } = await runPosthogClient(pipeline, client, proxy.url, 50);
      expect([client.name, errors, proxy.lost]).toEqual([client.name, [], count]);
    }),
  );
  await pipeline.drained();
  for (const client of clients)
    expect([client.name, await storedIndexes(pipeline, posthogKeyOf(client))]).toEqual([client.name, STEP_INDEXES]);
}

/**
 * Kills ingest-api before a response arrives, some times while clients send, and expects that what they report as delivered is
 * stored, and nothing twice. These are clients of Node.js and Python: the test knows what they report.
 *
 * @param count of the calls of each client: so many that there are responses after the last restart of a busy machine
 */
export async function expectDeliveredStored(
  pipeline: Pipeline,
  clients: readonly ThirdPartyClient[],
  { kills, count }: { readonly kills: number; readonly count: number },
): Promise<void> {
  let [responses, killed] = [0, 0];
  let restarted: Promise<void> | undefined;
  await using proxy = await startProxy(pipeline.services['ingest-api'].url, () => {
    if (restarted || killed === kills) return 'deliver';
    // Since the last restart.
    responses += 1;
    if (responses < 8) return 'deliver';
    responses = 0;
    killed += 1;
    restarted = pipeline.services['ingest-api']
      .kill9()
      .then(() => pipeline.restart('ingest-api'))
      .finally(() => {
        restarted = undefined;
      });
    return 'cut';
  });
  const outcomes = await runClients(clients, proxy.url, count);
  await restarted;
  expect([killed, proxy.lost]).toEqual([kills, kills]);
  await pipeline.drained();
  for (const [place, client] of clients.entries()) {
    const { delivered = [] } = outcomes[place] ?? {};
    const stored = await storedIndexes(pipeline, keyOf(client));
    expect(stored).toEqual([...new Set(stored)]);
    expect(stored).toEqual(expect.arrayContaining([...delivered]));
    // How many a client gives up depends on how long a restart takes, beside what else the machine does.
    expect(delivered.length).toBeGreaterThan(0);
  }
}
