// A worker thread that is the ordinary tenant: a client for each kind of request, which sends one after the other. It
// replies to each message with how long its requests took since the last one, and what was wrong with the responses. After
// `pause` it sends nothing more until `take`.
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { Agent } from 'undici';

export interface OrdinaryLoad {
  readonly ingestUrl: string;
  readonly queryUrl: string;
  /** An HTTP server that nobody else uses: it shows how busy the machine is. */
  readonly controlUrl: string;
  readonly key: string;
}

export interface OrdinaryOutcome {
  /** In milliseconds, by the kind of request. */
  readonly durations: Readonly<Record<string, readonly number[]>>;
  readonly faults: readonly string[];
}

const PAUSE_MS = 15;

/** All of them are about January 2026, to which nobody adds anything. */
const QUERIES: Readonly<Record<string, string>> = {
  page: '/events?startDate=2026-01-01&endDate=2026-01-31&limit=20&total=none',
  filtered: '/events?startDate=2026-01-01&endDate=2026-01-31&properties.plan=pro&userId=user-7&limit=20&total=none',
  series: '/events/series?startDate=2026-01-01&endDate=2026-01-31&groupBy=event',
  users: '/users?limit=20',
  names: '/events/names?startDate=2026-01-01&endDate=2026-01-31',
};

const { ingestUrl, queryUrl, controlUrl, key } = workerData as OrdinaryLoad;
const agent = new Agent({ connections: 16 });
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
const firstResponses = new Map<string, string>();
let durations: Record<string, number[]> = {};
let faults = new Set<string>();
let gate = Promise.withResolvers<void>();
gate.resolve();

async function repeat(kind: string, request: () => Promise<string | undefined>): Promise<never> {
  for (;;) {
    await gate.promise;
    const startedAt = performance.now();
    const fault = await request().catch((error: Error) => `failed: ${error.message}`);
    durations[kind] ??= [];
    durations[kind].push(performance.now() - startedAt);
    if (fault !== undefined) faults.add(`the other tenant's request "${kind}" ${fault}`);
    await delay(PAUSE_MS);
  }
}

async function submit(): Promise<string | undefined> {
  const body = JSON.stringify({
    foreignUserGroupId: 'later',
    events: [{ event: 'later', properties: { plan: 'pro' } }],
  });
  const options = { origin: ingestUrl, path: '/v1/public/userGroups', method: 'POST', headers, body } as const;
  const response = await agent.request(options);
  const text = await response.body.text();
  return response.statusCode === 202 ? undefined : `got ${response.statusCode} ${text.slice(0, 300)}`;
}

async function get(kind: string, path: string): Promise<string | undefined> {
  const response = await agent.request({ origin: queryUrl, path, method: 'GET', headers });
  const text = await response.body.text();
  if (response.statusCode !== 200) return `got ${response.statusCode} ${text.slice(0, 300)}`;
  const first = firstResponses.get(kind);
  if (first === undefined) firstResponses.set(kind, text);
  // A busy machine may take longer than a series has.
  if (text.includes('"complete":false')) return undefined;
  return first === undefined || text === first ? undefined : `got another response than before: ${text.slice(0, 300)}`;
}

async function control(): Promise<string | undefined> {
  await (await agent.request({ origin: controlUrl, path: '/', method: 'GET' })).body.text();
  return undefined;
}

parentPort?.on('message', (message: 'pause' | 'take') => {
  if (message === 'pause') gate = Promise.withResolvers<void>();
  else gate.resolve();
  parentPort?.postMessage({ durations, faults: [...faults] } satisfies OrdinaryOutcome);
  durations = {};
  faults = new Set();
});

await Promise.all([
  repeat('submit', submit),
  repeat('control', control),
  ...Object.entries(QUERIES).map(([kind, path]) => repeat(kind, () => get(kind, path))),
]);
