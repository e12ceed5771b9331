import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@sluice/shared/testing/until';
import { Webhook as Verifier } from 'standardwebhooks';
import { type ExpectedEvent, expectedEvents } from '../expected-events.ts';
import type { Tally } from '../load.ts';
import type { Pipeline } from '../pipeline.ts';
import { seededRandom } from '../random.ts';

/** What query-api needs for receivers on this machine that fail often, and have to catch up within minutes. */
export const RECEIVERS_ENV = {
  ...{ WEBHOOK_ALLOW_NETWORKS: '127.0.0.1', WEBHOOK_TIMEOUT_MS: '2000', WEBHOOK_RETRY_MS_MAX: '2000' },
};

/** How a receiver treats a request. `outage` begins a time in which it takes nothing. */
const TREATMENTS = {
  taken: 800,
  'taken after a second': 20,
  '500': 30,
  '503 with Retry-After': 20,
  redirected: 20,
  'cut before it is read': 30,
  'cut after it was taken': 30,
  'never answered': 15,
  'answered for ever': 15,
  outage: 3,
} as const;

type Treatment = keyof typeof TREATMENTS;

const OUTAGE_MS = 20_000;

/** Whether the sender can know that the events were taken. */
const TAKEN: ReadonlySet<Treatment> = new Set(['taken', 'taken after a second']);

/** What became of the events of a webhook. Lists are empty when all is well. */
export interface Receipt {
  readonly name: string;
  /** Events that had to come. */
  readonly required: number;
  readonly requests: number;
  /** How often requests were treated in each way. */
  readonly treatments: Readonly<Partial<Record<Treatment, number>>>;
  /** Events that came again after they had been taken. */
  readonly copies: number;
  /** Events that had to come and were never taken. */
  readonly missing: readonly string[];
  /** Events that nobody sent, and requests whose signature or form is wrong. */
  readonly wrong: readonly string[];
}

interface WebhookDescription {
  readonly name: string;
  readonly batched: boolean;
  /** The organization whose events it has. Default: all. */
  readonly group?: string;
}

export interface Receivers extends AsyncDisposable {
  /** Waits until everything that has to come was taken. */
  verify(tally: Tally, cutOff: ReadonlySet<string>): Promise<readonly Receipt[]>;
}

/** Subscribes receivers that fail in every way: one to all events in batches, one to those of an organization, one by one. */
export async function startReceivers(
  pipeline: Pick<Pipeline, 'services' | 'key'>,
  seed: number,
  group: string,
): Promise<Receivers> {
  await using cleanup = new AsyncDisposableStack();
  const webhooks: readonly WebhookDescription[] = [
    { name: 'all events in batches', batched: true },
    { name: 'events of one organization', batched: false, group },
  ];
  const receivers = await Promise.all(
    webhooks.map(async (webhook, index) => cleanup.use(await startReceiver(pipeline, seed * 10 + index, webhook))),
  );
  const kept = cleanup.move();
  return {
    async verify(tally, cutOff) {
      const expected = expectedEvents(tally, cutOff);
      return await Promise.all(receivers.map(({ verify }) => verify(expected)));
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function startReceiver(
  pipeline: Pick<Pipeline, 'services' | 'key'>,
  seed: number,
  { name, batched, group }: WebhookDescription,
) {
  const draw = drawing(seed);
  const taken = new Map<string, number>();
  const treatments: Partial<Record<Treatment, number>> = {};
  const wrong: string[] = [];
  let requests = 0;
  let verifier: Verifier | undefined;
  let outageEndsAt = 0;
  let isOver = false;

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const drawn = isOver ? 'taken' : draw();
    if (drawn === 'outage') outageEndsAt = performance.now() + OUTAGE_MS;
    const treatment = !isOver && performance.now() < outageEndsAt ? 'outage' : drawn;
    requests += 1;
    treatments[treatment] = (treatments[treatment] ?? 0) + 1;
    if (treatment === 'cut before it is read' || treatment === 'outage') return void request.socket.destroy();
    const keys = keysOf(await text(request), request);
    if (treatment === 'cut after it was taken') for (const key of keys) taken.set(key, taken.get(key) ?? 0);
    else if (TAKEN.has(treatment)) for (const key of keys) taken.set(key, (taken.get(key) ?? 0) + 1);
    await answer(treatment, response);
  }

  /** Returns the keys of the events of a request. */
  function keysOf(body: string, { headers }: IncomingMessage): readonly string[] {
    try {
      verifier?.verify(body, headers as Record<string, string>);
      const { data } = JSON.parse(body) as { data: SentEvent | readonly SentEvent[] };
      return [data].flat().map(({ properties }) => properties.key);
    } catch (error) {
      wrong.push(`${(error as Error).message}: ${body.slice(0, 200)}`);
      return [];
    }
  }

  const server = createServer((request, response) => void receive(request, response).catch(() => undefined));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`${pipeline.services['query-api'].url}/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pipeline.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ url: `http://127.0.0.1:${port}/`, batched },
      filter: { event: 'load', ...(group !== undefined && { groupId: group }) },
    }),
  });
  if (response.status !== 201) throw new Error(`no webhook: ${response.status} ${await response.text()}`);
  verifier = new Verifier(((await response.json()) as { secret: string }).secret);

  async function verify(expected: ReadonlyMap<string, ExpectedEvent>): Promise<Receipt> {
    isOver = true;
    const own = [...expected].filter(([, event]) => group === undefined || event.group === group);
    const required = own.filter(([, { must }]) => must).map(([key]) => key);
    const missing = () => required.filter((key) => !taken.get(key));
    await until(`the webhook of ${name} to be delivered`, async () => missing().length === 0).catch(() => undefined);
    const ownKeys = new Set(own.map(([key]) => key));
    const copies = [...taken.values()].reduce((sum, times) => sum + Math.max(0, times - 1), 0);
    const invented = [...taken.keys()].filter((key) => !ownKeys.has(key)).map((key) => `${key} was never sent`);
    return {
      ...{ name, required: required.length, requests, treatments, copies },
      ...{ missing: missing(), wrong: [...wrong, ...invented] },
    };
  }

  return {
    verify,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

interface SentEvent {
  readonly properties: { readonly key: string };
}

/** Draws treatments by their weights. */
function drawing(seed: number): () => Treatment {
  const random = seededRandom(seed);
  const weights = Object.entries(TREATMENTS) as [Treatment, number][];
  const sum = weights.reduce((total, [, weight]) => total + weight, 0);
  return () => {
    let rest = random() * sum;
    for (const [treatment, weight] of weights) {
      rest -= weight;
      if (rest < 0) return treatment;
    }
    return 'taken';
  };
}

async function answer(treatment: Treatment, response: ServerResponse): Promise<void> {
  switch (treatment) {
    case 'taken after a second':
      await delay(1_000);
      return void response.writeHead(200).end('{}');
    case '500':
      return void response.writeHead(500).end('a fault');
    case '503 with Retry-After':
      return void response.writeHead(503, { 'retry-after': '1' }).end();
    case 'redirected':
      return void response.writeHead(302, { location: '/elsewhere' }).end();
    case 'cut after it was taken':
      return void response.destroy();
    case 'never answered':
      return;
    case 'answered for ever':
      response.writeHead(200);
      while (!response.destroyed) {
        response.write('.');
        await delay(100);
      }
      return;
    default:
      return void response.writeHead(204).end();
  }
}
