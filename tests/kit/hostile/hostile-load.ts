// A worker thread that is the hostile tenant. It sends the products of each message over a few connections, again and
// again until the time is over, and replies with what was wrong with the responses.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { until } from '@sluice/shared/testing/until';
import { Agent, type Dispatcher } from 'undici';
import { readMetric } from '../metrics.ts';
import type { Belongings, BuiltRequest, HostileRequest } from './door.ts';
import { build, describeProduct, type Product } from './product.ts';
import { REQUEST_ID_PREFIX } from './remains.ts';

export interface HostileLoad {
  readonly urls: Readonly<Record<HostileRequest['service'], string>>;
  /** What the tenant has. */
  readonly belongings: Belongings;
  /** How long a query may take, in milliseconds: then a response that has begun is cut off. */
  readonly queryTimeoutMs: number;
}

/** A message to the worker. */
export interface HostileTask {
  readonly products: readonly Product[];
  /** Each product is sent once, and then again for so long. */
  readonly durationMs: number;
}

export interface HostileOutcome {
  /** What was wrong with the responses, each once. */
  readonly faults: readonly string[];
  /** Responses that were cut off before their queries took as long as they may: on a busy machine that is no fault. */
  readonly cut: readonly string[];
  readonly responses: number;
  readonly unavailable: number;
}

const CONNECTIONS = 6;

/** What is sent to ingest-api in one task at most: Kafka and ClickHouse keep all of it. */
const BODY_BYTES_MAX = 24 * 1_024 * 1_024;

/** How much of a response is read. */
const RESPONSE_BYTES_MAX = 256 * 1_024 * 1_024;

/** How much of the beginning of a response is looked at. */
const KEPT_BYTES = 256 * 1_024;

/** Bodies that name something of the tenant are no longer. */
const NAMED_BYTES_MAX = 256 * 1_024;

/** How long a stream is listened to, in milliseconds: query-api has read events for it by then. */
const LISTENED_MS = 1_500;

/** What a query may be refused with that is beyond no limit of its parameters. */
const TOO_MUCH = ['query_too_expensive', 'too_long'] as const;

/** How often a request is sent that deletes what another one has created. */
const UNDO_ATTEMPTS = 40;

/** How long a stream whose client has left may be counted, in milliseconds. */
const CLOSED_MS_MAX = 10_000;

const { urls, belongings, queryTimeoutMs } = workerData as HostileLoad;

/** The id of a request: what it causes elsewhere has it, too. */
function requestIdOf(product: number, index: number): string {
  return `${REQUEST_ID_PREFIX}${product}.${index}`;
}

async function run({ products, durationMs }: HostileTask): Promise<HostileOutcome> {
  const agent = new Agent({ connections: 128, pipelining: 1, headersTimeout: 45_000, bodyTimeout: 45_000 });
  const built = products.map((product) => build(product));
  const faults = new Set<string>();
  const cut = new Set<string>();
  const counts = { responses: 0, unavailable: 0, bytes: 0 };
  const endsAt = performance.now() + durationMs;
  let next = 0;
  const work = async () => {
    for (;;) {
      const index = next++;
      if (index >= products.length && performance.now() >= endsAt) return;
      const product = index % products.length;
      const { request, expected } = built[product] as BuiltRequest;
      const bytes = request.body?.length ?? 0;
      const isOnce = (request.copies ?? 1) > 1 || (counts.bytes + bytes > BODY_BYTES_MAX && bytes > 65_536);
      if (index >= products.length && isOnce) {
        await delay(10);
        continue;
      }
      counts.bytes += bytes;
      const response = await send(agent, request, requestIdOf(product, index));
      counts.responses += 1;
      if (response.status === 503) counts.unavailable += 1;
      const fault = faultOf(response, expected) ?? (await undo(agent, request, response));
      const found = response.cutAfterMs === undefined ? faults : cut;
      const isTooLong = (response.cutAfterMs ?? 0) >= queryTimeoutMs;
      if (fault !== undefined && !isTooLong) found.add(`${describeProduct(products[product] as Product)}: ${fault}`);
      if (response.status === 503) await delay(50);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
  await agent.destroy();
  return { faults: [...faults], cut: [...cut], ...counts };
}

interface Received {
  /** 0 when there was none. */
  readonly status: number;
  readonly retryAfter: unknown;
  readonly text: string;
  /** After how many milliseconds it ended too early, once it had begun. `undefined`: it did not. */
  readonly cutAfterMs: number | undefined;
}

let streaming: Promise<unknown> = Promise.resolve();

/** Streams are opened one after the other: how many there are at once decides how the next one is answered. */
async function send(agent: Agent, request: HostileRequest, id: string): Promise<Received> {
  if (!request.endless) return await sendOnce(agent, request, id, new AbortController().signal, LISTENED_MS);
  const mine = streaming.then(async () => {
    const response = await sendCopies(agent, request, id);
    // The ordinary tenant listens as well.
    const url = urls['query-api'];
    await until(
      'streams to be closed',
      async () => (await readMetric({ url }, 'sluice_stream_listeners')) <= 1,
      CLOSED_MS_MAX,
    ).catch(() => undefined);
    return response;
  });
  streaming = mine;
  return await mine;
}

/** Deletes what a request has created. Returns what is wrong; `undefined` when nothing is. */
async function undo(agent: Agent, request: HostileRequest, { status, text }: Received): Promise<string | undefined> {
  if (request.undo === undefined || status !== 201) return undefined;
  const created = JSON.parse(text) as Readonly<Record<string, unknown>>;
  const path = request.undo.replaceAll(/\{(\w+)\}/g, (name, member: string) =>
    Object.hasOwn(created, member) ? encodeURIComponent(String(created[member])) : name,
  );
  const { service, headers } = request;
  const deletion: HostileRequest = { service, method: 'DELETE', path, headers: { ...pick(headers, 'authorization') } };
  let response: Received | undefined;
  for (let attempt = 0; attempt < UNDO_ATTEMPTS; attempt += 1) {
    response = await send(agent, deletion, 'undo');
    // The attempt after a response that was lost finds nothing.
    if ([200, 204, 404].includes(response.status)) return undefined;
    await delay(50);
  }
  return `cannot be undone by DELETE ${path}: ${response?.status} ${response?.text.slice(0, 300)}`;
}

function pick(headers: Readonly<Record<string, string>>, name: string): Record<string, string> {
  return headers[name] === undefined ? {} : { [name]: headers[name] };
}

/** Sends a request so many times at once, and returns the last response. */
async function sendCopies(agent: Agent, request: HostileRequest, id: string): Promise<Received> {
  const { copies = 1 } = request;
  const ends = new AbortController();
  const others: Promise<unknown>[] = [];
  for (let copy = 1; copy < copies; copy += 1) {
    const { promise: opened, resolve } = Promise.withResolvers<void>();
    others.push(sendOnce(agent, request, id, ends.signal, Number.POSITIVE_INFINITY, resolve));
    await opened;
  }
  const last = await sendOnce(agent, request, id, ends.signal, LISTENED_MS);
  ends.abort();
  await Promise.all(others);
  return last;
}

async function sendOnce(
  agent: Agent,
  { service, method, path, headers, body, endless = false }: HostileRequest,
  id: string,
  signal: AbortSignal,
  listenedMs: number,
  onOpen: () => void = () => undefined,
): Promise<Received> {
  // An empty one stands for none.
  const { authorization = 'Bearer {key}', ...others } = headers;
  const options: Dispatcher.RequestOptions = {
    origin: urls[service],
    path: withBelongings(path),
    method,
    headers: {
      'x-request-id': id,
      ...others,
      ...(authorization !== '' && { authorization: withBelongings(authorization) }),
    },
    body: body === undefined ? null : withBelongingsInBody(body),
  };
  let status = 0;
  const startedAt = performance.now();
  try {
    const response = await agent.request(options);
    status = response.statusCode;
    onOpen();
    const text = await readText(response.body, endless && status === 200 ? listenedMs : undefined, signal);
    return { status, retryAfter: response.headers['retry-after'], text, cutAfterMs: undefined };
  } catch (error) {
    onOpen();
    const cutAfterMs = status === 200 ? performance.now() - startedAt : undefined;
    return { status: 0, retryAfter: undefined, text: `${status} and then ${error}`, cutAfterMs };
  }
}

const NAMES = new RegExp(`\\{(${Object.keys(belongings).join('|')})\\}`, 'g');

function withBelongings(text: string): string {
  return text.replaceAll(NAMES, (_, name: keyof Belongings) => belongings[name]);
}

/** Byte by byte: it may be compressed. A body that is padded stays as long as it is. */
function withBelongingsInBody(body: Buffer): Buffer {
  if (body.length > NAMED_BYTES_MAX) return body;
  const text = body.toString('latin1');
  if (text.search(NAMES) < 0) return body;
  const named = withBelongings(text);
  const surplus = Math.max(named.length - text.length, 0);
  const isPadded = text.slice(1, 1 + surplus).trim() === '';
  return Buffer.from(isPadded ? named.slice(0, 1) + named.slice(1 + surplus) : named, 'latin1');
}

async function readText(
  body: Dispatcher.ResponseData['body'],
  listenedMs: number | undefined,
  signal: AbortSignal,
): Promise<string> {
  const kept: Buffer[] = [];
  let bytes = 0;
  const stop = () => body.destroy();
  const isEndless = listenedMs !== undefined;
  const timer = isEndless && Number.isFinite(listenedMs) ? setTimeout(stop, listenedMs) : undefined;
  signal.addEventListener('abort', stop);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (bytes < KEPT_BYTES) kept.push(chunk);
      bytes += chunk.length;
      if (bytes > RESPONSE_BYTES_MAX) break;
    }
  } catch (error) {
    if (!isEndless && !signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
  return Buffer.concat(kept).toString();
}

/** Returns what is wrong with a response; `undefined` when nothing is. */
function faultOf(
  { status, retryAfter, text }: Received,
  { statuses, named, refusals = TOO_MUCH }: BuiltRequest['expected'],
): string | undefined {
  const shown = `${status} ${text.slice(0, 300).replace(/,"requestId":.*/, '')}`;
  if (status === 503) return /^\d+$/.test(String(retryAfter)) ? undefined : `503 without Retry-After: ${shown}`;
  if (!statuses.includes(status)) return `not ${statuses.join(' or ')} but ${shown}`;
  const mayDo = statuses.some((one) => one < 300);
  if (status === 400 && mayDo && !refusals.some((code) => text.includes(`"${code}"`))) return `refused: ${shown}`;
  const missing = named.find((texts) => !texts.some((one) => text.includes(one)));
  return missing && `does not name ${missing.join(' or ')}: ${shown}`;
}

async function main(): Promise<void> {
  const port = parentPort;
  if (!port) throw new Error('this runs in a worker thread');
  for (;;) {
    const [task] = (await once(port, 'message')) as [HostileTask];
    port.postMessage(await run(task));
  }
}

await main();
