// A worker thread that is the ordinary tenant: a client for each kind of request, which sends one after the other. It
// replies to each message with how long its requests took since the last one, and what was wrong with the responses. After
// `pause` it leaves its stream and sends nothing more until `take`.
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { Agent } from 'undici';
import { ORDINARY_QUERIES } from './ordinary-kinds.ts';

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

/** A request that is still under way counts when it has taken so long, in milliseconds. */
const PENDING_MS_MIN = 3_000;

/** More than what ingest-api reads at once: such a body waits for its turn. */
const LARGE_TEXT = 'x'.repeat(100_000);

const { ingestUrl, queryUrl, controlUrl, key } = workerData as OrdinaryLoad;
const agent = new Agent({ connections: 16 });
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
const firstResponses = new Map<string, string>();
let durations: Record<string, number[]> = {};
let faults = new Set<string>();
let gate = Promise.withResolvers<void>();
gate.resolve();
let isPaused = false;

/** When the request of each kind that is under way began. */
const pending = new Map<string, number>();
let resumedAt = 0;

function tookMs(startedAt: number): number {
  return performance.now() - Math.max(startedAt, resumedAt);
}

function record(kind: string, ms: number): void {
  durations[kind] ??= [];
  durations[kind].push(ms);
}

async function repeat(kind: string, request: () => Promise<string | undefined>): Promise<never> {
  for (;;) {
    await gate.promise;
    const startedAt = performance.now();
    pending.set(kind, startedAt);
    const fault = await request().catch((error: Error) => `failed: ${error.message}`);
    pending.delete(kind);
    record(kind, tookMs(startedAt));
    if (fault !== undefined) faults.add(`the other tenant's request "${kind}" ${fault}`);
    await delay(PAUSE_MS);
  }
}

async function submit(text: string): Promise<string | undefined> {
  const body = JSON.stringify({ foreignUserGroupId: 'later', events: [{ event: 'later', properties: { text } }] });
  const options = { origin: ingestUrl, path: '/v1/public/userGroups', method: 'POST', headers, body } as const;
  const response = await agent.request(options);
  const reply = await response.body.text();
  return response.statusCode === 202 ? undefined : `got ${response.statusCode} ${reply.slice(0, 300)}`;
}

interface OpenStream {
  readonly messages: AsyncIterator<Buffer>;
  readonly leave: () => void;
}

let stream: OpenStream | undefined;

/** Waits for the next event of a stream, or for the pause that ends the stream. */
async function listen(): Promise<string | undefined> {
  stream ??= await openStream();
  const { messages } = stream;
  if (isPaused) leaveStream();
  for (;;) {
    const next = await messages.next().catch((error: Error) => ({ done: true, value: error.message }));
    if (stream?.messages !== messages) return undefined;
    if (next.done || next.value.includes('event: problem')) {
      stream = undefined;
      return `ended: ${next.value}`;
    }
    if (next.value.includes('data: ')) return undefined;
  }
}

function leaveStream(): void {
  stream?.leave();
  stream = undefined;
}

async function openStream(): Promise<OpenStream> {
  const options = { origin: queryUrl, path: '/events/stream?event=later', method: 'GET', headers } as const;
  const { statusCode, body } = await agent.request(options);
  if (statusCode !== 200) throw new Error(`${statusCode} ${(await body.text()).slice(0, 300)}`);
  // Leaving is one, also when nobody reads.
  body.on('error', () => undefined);
  return { messages: (body as AsyncIterable<Buffer>)[Symbol.asyncIterator](), leave: () => body.destroy() };
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
  isPaused = message === 'pause';
  if (isPaused) {
    gate = Promise.withResolvers<void>();
    leaveStream();
  } else {
    gate.resolve();
    resumedAt = performance.now();
  }
  const late = message === 'pause' ? pending : [];
  for (const [kind, startedAt] of late) if (tookMs(startedAt) > PENDING_MS_MIN) record(kind, tookMs(startedAt));
  parentPort?.postMessage({ durations, faults: [...faults] } satisfies OrdinaryOutcome);
  durations = {};
  faults = new Set();
});

await Promise.all([
  repeat('submit', () => submit('')),
  repeat('large', () => submit(LARGE_TEXT)),
  repeat('stream', listen),
  repeat('control', control),
  ...Object.entries(ORDINARY_QUERIES).map(([kind, path]) => repeat(kind, () => get(kind, path))),
]);
