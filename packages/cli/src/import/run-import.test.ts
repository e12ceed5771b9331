import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FORMATS, type FormatName } from './formats.ts';
import { RefusedLines } from './refused-lines.ts';
import { Import, type ImportEnd } from './run-import.ts';
import { Sender } from './sender.ts';
import { Source } from './source.ts';

interface Received {
  readonly path: string;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly key: string | undefined;
  readonly idempotencyKey: string;
}

/** Responds to the n-th request, counted from 1. */
type Respond = (request: Received, response: ServerResponse, number: number) => void | Promise<void>;

let server: Server;
let url: URL;
let folder: string;
let received: Received[];
let open: number;
let openMax: number;
let respond: Respond;

const accept: Respond = ({ path }, response) => {
  const isBatch = path === '/base/v1/batch';
  const body = isBatch ? '{"success":true}' : '{"status":"accepted","events":[]}';
  response.writeHead(isBatch ? 200 : 202, { 'content-type': 'application/json' }).end(body);
};

function refuse(response: ServerResponse, status: number, code: string, headers: Record<string, string> = {}): void {
  const errors =
    status === 400 ? [{ path: 'events.0.event', code: 'custom', message: 'must not\nbe empty' }] : undefined;
  const problem = {
    type: 'about:blank',
    title: 'x',
    status,
    detail: 'The request has an error.',
    code,
    requestId: 'r',
    errors,
  };
  response.writeHead(status, { 'content-type': 'application/problem+json', ...headers }).end(JSON.stringify(problem));
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-import-'));
  received = [];
  open = 0;
  openMax = 0;
  respond = accept;
  server = createServer(async (request, response) => {
    open += 1;
    openMax = Math.max(open, openMax);
    response.on('close', () => {
      open -= 1;
    });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { url: path = '', headers } = request;
    const text = Buffer.concat(chunks).toString();
    const one = {
      path,
      text,
      body: JSON.parse(text) as Received['body'],
      key: headers.authorization,
      idempotencyKey: String(headers['idempotency-key']),
    };
    received.push(one);
    await respond(one, response, received.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`);
});

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
});

interface RunOptions {
  readonly format?: FormatName;
  readonly concurrency?: number;
  readonly giveUpAfterMs?: number;
  readonly signal?: AbortSignal;
}

async function runImport(content: string | Buffer, options: RunOptions = {}) {
  const { format = 'native', concurrency = 4, giveUpAfterMs = 5_000, signal = new AbortController().signal } = options;
  const file = join(folder, 'input');
  await writeFile(file, content);
  const refusedFile = join(folder, 'refused.txt');
  const refusedLines = await RefusedLines.create(refusedFile);
  const sender = new Sender({ url, key: 'the-key', connectionsMax: concurrency, giveUpAfterMs });
  const source = await Source.open(file, signal);
  const job = new Import({
    format: FORMATS[format],
    chunks: source.chunks(),
    sender,
    refusedLines,
    concurrency,
    signal,
  });
  const end: ImportEnd = await job.run();
  await refusedLines.close();
  return { end, counts: job.counts, refused: await readFile(refusedFile, 'utf8').catch(() => undefined) };
}

function lines(count: number, make: (index: number) => object): string {
  return Array.from({ length: count }, (_, index) => `${JSON.stringify(make(index))}\n`).join('');
}

const organization = (index: number) => ({ foreignUserGroupId: 'acme', events: [{ event: `e${index}` }] });

test('every line is sent once, to the place it is for, with the key', async () => {
  const content = `${lines(20, organization)}\n  \n{"foreignId":"ada","events":[{"event":"e"},{"event":"f"}]}`;
  const { end, counts, refused } = await runImport(content);
  expect(end).toEqual({ kind: 'complete' });
  expect(counts).toEqual({ accepted: 21, events: 22, refused: 0 });
  expect(refused).toBeUndefined();
  expect(new Set(received.map(({ key }) => key))).toEqual(new Set(['Bearer the-key']));
  expect(received.filter(({ path }) => path === '/base/v1/public/users').map(({ body }) => body['foreignId'])).toEqual([
    'ada',
  ]);
  const sent = received
    .filter(({ path }) => path === '/base/v1/public/userGroups')
    .map(({ body }) => JSON.stringify(body));
  expect(sent.sort()).toEqual(lines(20, organization).trim().split('\n').sort());
});

test('a compressed file is unpacked, whatever its name, and one that is cut off is said to be', async () => {
  const packed = gzipSync(lines(1_000, organization));
  expect((await runImport(packed)).counts.accepted).toBe(1_000);
  const { end } = await runImport(packed.subarray(0, packed.length / 2));
  expect(end).toMatchObject({ kind: 'stopped', reason: expect.stringContaining('cannot be read') });
});

test('no more submissions are under way than may be', async () => {
  respond = async (request, response, number) => {
    await wait(number % 7);
    await accept(request, response, number);
  };
  await runImport(lines(100, organization), { concurrency: 5 });
  expect(openMax).toBe(5);
});

test('properties of one organization or user arrive in the order of the file; the rest does not wait for them', async () => {
  respond = async (request, response, number) => {
    if (request.body['properties'] && number % 3 === 0)
      return refuse(response, 503, 'overloaded', { 'retry-after': '0' });
    await wait(request.body['properties'] ? 5 : 0);
    await accept(request, response, number);
  };
  const content = lines(60, (index) => {
    if (index % 3 === 2) return organization(index);
    const subject = index % 3 === 0 ? { foreignUserGroupId: `o${index % 2}` } : { foreignId: `u${index % 2}` };
    return { ...subject, properties: { index } };
  });
  const { counts } = await runImport(content, { concurrency: 8 });
  expect(counts.accepted).toBe(60);
  const bySubject = Map.groupBy(
    received.filter(({ body }) => body['properties']),
    ({ body }) => String(body['foreignUserGroupId'] ?? body['foreignId']),
  );
  expect([...bySubject.keys()].sort()).toEqual(['o0', 'o1', 'u0', 'u1']);
  for (const found of bySubject.values()) {
    const order = found.map(({ body }) => (body['properties'] as { index: number }).index);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(new Set(order).size).toBe(10);
  }
});

test('what the service refuses, and what is no JSON, is listed with its line number and the reason', async () => {
  respond = (request, response, number) => {
    if (request.body['foreignUserGroupId'] === 'bad') return refuse(response, 400, 'invalid_request');
    return accept(request, response, number);
  };
  const content = Buffer.concat([
    Buffer.from('{"foreignUserGroupId":"good"}\n\nnonsense\n{"foreignUserGroupId":"bad"}\n[]\n'),
    Buffer.from([0x22, 0xff, 0x22, 0x0a]),
    Buffer.from('{"foreignUserGroupId":"good"}'),
  ]);
  const { end, counts, refused } = await runImport(content, { concurrency: 1 });
  expect(end).toEqual({ kind: 'complete' });
  expect(counts).toEqual({ accepted: 2, events: 0, refused: 4 });
  expect(refused?.split('\n').sort()).toEqual([
    '',
    'line 3: is not JSON',
    'line 4: 400 invalid_request: The request has an error. events.0.event must not be empty',
    'line 5: is not a JSON object',
    'line 6: is not UTF-8',
  ]);
});

test('an import after one with refusals leaves no list of refused lines', async () => {
  expect((await runImport('nonsense')).refused).toBeDefined();
  expect((await runImport('{"foreignUserGroupId":"good"}')).refused).toBeUndefined();
});

test('a submission is retried while the service is down, busy or cut off, with the same Idempotency-Key', async () => {
  respond = (request, response, number) => {
    if (number === 1) return void response.destroy();
    if (number === 2) return refuse(response, 503, 'event_log_unavailable', { 'retry-after': '1' });
    if (number === 3) return refuse(response, 500, 'internal');
    if (number === 4) return void response.writeHead(429, { 'retry-after': 'soon' }).end('slow down');
    return accept(request, response, number);
  };
  const startedAt = performance.now();
  const { counts } = await runImport('{"foreignUserGroupId":"acme","events":[{"event":"e"}]}', {
    giveUpAfterMs: 20_000,
  });
  expect(counts).toEqual({ accepted: 1, events: 1, refused: 0 });
  expect(received).toHaveLength(5);
  expect(performance.now() - startedAt).toBeGreaterThan(1_000);
  expect(new Set(received.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
});

test('over the rate of the key it waits as it is told, longer than it would for a service that is away', async () => {
  let freeAt = 0;
  const notBefore = new Map<string, number>();
  let tooSoon = 0;
  respond = (request, response, number) => {
    const now = performance.now();
    // A timer may be a millisecond early.
    if (now + 5 < (notBefore.get(request.idempotencyKey) ?? 0)) tooSoon += 1;
    if (now < freeAt) {
      const seconds = Math.ceil((freeAt - now) / 1_000);
      notBefore.set(request.idempotencyKey, now + seconds * 1_000);
      return refuse(response, 429, 'rate_limited', { 'retry-after': String(seconds) });
    }
    freeAt = now + 900;
    return accept(request, response, number);
  };
  const startedAt = performance.now();
  const { end, counts } = await runImport(lines(3, organization), { concurrency: 3, giveUpAfterMs: 300 });
  expect(end).toEqual({ kind: 'complete' });
  expect(counts).toEqual({ accepted: 3, events: 3, refused: 0 });
  expect(performance.now() - startedAt).toBeGreaterThan(1_800);
  expect([notBefore.size, tooSoon]).toEqual([2, 0]);
});

test('equal lines are submissions of their own, and a file that is imported again sends the same keys', async () => {
  const content = lines(3, () => organization(1));
  await runImport(content);
  const first = received.map(({ idempotencyKey }) => idempotencyKey).sort();
  expect(new Set(first).size).toBe(3);
  for (const key of first) expect(key).toMatch(/^[\x21-\x7e]{1,200}$/);
  received = [];
  await runImport(content);
  expect(received.map(({ idempotencyKey }) => idempotencyKey).sort()).toEqual(first);
});

test('without any progress it gives up after the time that was set, and says where', async () => {
  respond = (request, response, number) => {
    if (number > 2) return refuse(response, 503, 'overloaded', { 'retry-after': '600' });
    return accept(request, response, number);
  };
  const { end, counts } = await runImport(lines(10, organization), { concurrency: 1, giveUpAfterMs: 700 });
  expect(end).toEqual({ kind: 'stopped', line: 3, reason: expect.stringMatching(/503 overloaded.*for 1 seconds/) });
  expect(counts.accepted).toBe(2);
});

test.each([
  [401, /refuses the key/],
  [403, /refuses the key/],
  [404, /is not Sluice/],
  [302, /is not Sluice/],
])('status %s ends the import at once', async (status, reason) => {
  respond = (_request, response) => void response.writeHead(status).end();
  const { end } = await runImport(lines(50, organization), { concurrency: 2 });
  expect(end).toEqual({ kind: 'stopped', line: 1, reason: expect.stringMatching(reason) });
  expect(received.length).toBeLessThanOrEqual(4);
});

test('an interruption finishes what is under way and begins nothing more', async () => {
  const controller = new AbortController();
  respond = async (request, response, number) => {
    if (number === 3) controller.abort();
    await wait(20);
    await accept(request, response, number);
  };
  const { end, counts } = await runImport(lines(100, organization), { concurrency: 2, signal: controller.signal });
  expect(counts.accepted).toBe(received.length);
  expect(end).toEqual({ kind: 'interrupted', line: received.length });
  expect(received.length).toBeLessThan(8);
});

interface SentCall {
  readonly type: string;
  readonly messageId: string;
  readonly userId?: string;
  readonly context?: { readonly groupId?: string };
  readonly traits?: { readonly index: number };
}

const callsOf = ({ body }: Received): readonly SentCall[] => body['batch'] as SentCall[];
const call = (index: number) => ({
  type: 'track',
  event: 'e',
  userId: 'jane',
  messageId: `m${index}`,
  timestamp: '2026-03-01T12:00:00.000Z',
});

test('calls are sent together, each once, and without an Idempotency-Key', async () => {
  const { end, counts, refused } = await runImport(lines(1_203, call), { format: 'segment' });
  expect(end).toEqual({ kind: 'complete' });
  expect(counts).toEqual({ accepted: 1_203, events: 1_203, refused: 0 });
  expect(refused).toBeUndefined();
  expect(received.map(({ path }) => path)).toEqual(Array(3).fill('/base/v1/batch'));
  expect(new Set(received.map(({ idempotencyKey }) => idempotencyKey))).toEqual(new Set(['undefined']));
  const sent = received.flatMap(callsOf).map(({ messageId }) => Number(messageId.slice(1)));
  expect(sent.sort((a, b) => a - b)).toEqual(Array.from({ length: 1_203 }, (_, index) => index));
});

test('a batch is at most a megabyte, and a call that is larger is sent alone', async () => {
  const padding = [300_000, 300_000, 300_000, 300_000, 2_000_000, 1_000].map((bytes) => 'x'.repeat(bytes));
  await runImport(
    lines(6, (index) => ({ ...call(index), properties: { padding: padding[index] } })),
    { format: 'segment', concurrency: 1 },
  );
  expect(received.map((request) => callsOf(request).map(({ messageId }) => messageId))).toEqual([
    ['m0', 'm1', 'm2'],
    ['m3'],
    ['m4'],
    ['m5'],
  ]);
});

test('each rejected call is listed with its own line number and reason; the others of its batch are accepted', async () => {
  respond = (request, response) => {
    const rejected = callsOf(request).flatMap(({ type }, index) =>
      type === 'bad' ? [{ index, code: 'invalid_call', message: 'type must be\none of: track.' }] : [],
    );
    response.writeHead(200).end(JSON.stringify({ success: true, rejected, rejectedCount: rejected.length }));
  };
  const content = lines(1_000, (index) => ({ ...call(index), type: index % 400 === 7 ? 'bad' : 'track' }));
  const { end, counts, refused } = await runImport(`\n${content}`, { format: 'segment' });
  expect(end).toEqual({ kind: 'complete' });
  expect(counts).toEqual({ accepted: 997, events: 997, refused: 3 });
  expect(refused?.trim().split('\n').sort()).toEqual([
    'line 409: invalid_call: type must be one of: track.',
    'line 809: invalid_call: type must be one of: track.',
    'line 9: invalid_call: type must be one of: track.',
  ]);
});

test('a batch that is refused as a whole is halved until the line is found that is the reason', async () => {
  respond = (request, response, number) => {
    if (callsOf(request).some(({ messageId }) => messageId === 'm70')) return refuse(response, 400, 'malformed_json');
    if (callsOf(request).length > 30) return refuse(response, 413, 'body_too_large');
    return accept(request, response, number);
  };
  const { end, counts, refused } = await runImport(lines(100, call), { format: 'segment' });
  expect(end).toEqual({ kind: 'complete' });
  expect(counts).toEqual({ accepted: 99, events: 99, refused: 1 });
  expect(refused).toBe('line 71: 400 malformed_json: The request has an error. events.0.event must not be empty\n');
});

test('changes of one user or organization are taken in the order of the file, with several batches under way', async () => {
  const taken: SentCall[] = [];
  respond = async (request, response, number) => {
    if (number % 3 === 0) return refuse(response, 503, 'overloaded', { 'retry-after': '0' });
    taken.push(...callsOf(request));
    await wait(20);
    return accept(request, response, number);
  };
  const content = lines(9_000, (index) => {
    const change = { ...call(index), traits: { index } };
    if (index % 3 === 0) return { ...change, type: 'identify', userId: index % 2 === 0 ? 'jane' : index % 7 };
    if (index % 3 === 1) return { ...change, type: 'group', context: { groupId: `o${index % 5}` } };
    return call(index);
  });
  const { counts } = await runImport(content, { format: 'segment', concurrency: 8, giveUpAfterMs: 20_000 });
  expect(counts.accepted).toBe(9_000);
  expect(openMax).toBeGreaterThan(2);
  const byEntity = Map.groupBy(taken, ({ type, userId, context }) =>
    type === 'identify' ? `user ${userId}` : type === 'group' ? `organization ${context?.groupId}` : '',
  );
  byEntity.delete('');
  expect(byEntity.size).toBe(13);
  for (const found of byEntity.values()) {
    const order = found.map(({ traits }) => traits?.index ?? 0);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  }
});

test('no call waits for the end of the file', async () => {
  const content = lines(30_000, (index) => ({ ...call(index), type: index === 0 ? 'identify' : 'track' }));
  const { counts } = await runImport(content, { format: 'segment', concurrency: 1 });
  expect(counts.accepted).toBe(30_000);
  const first = received.findIndex((request) => callsOf(request)[0]?.messageId === 'm0');
  expect(first).toBeLessThan(received.length / 2);
});

test('the summary of what is left counts the lines that are held as well', async () => {
  const controller = new AbortController();
  respond = (request, response, number) => {
    controller.abort();
    return accept(request, response, number);
  };
  // The first call falls into another batch than the rest, which is full first.
  const content = lines(5_000, (index) => ({ ...call(index), type: index === 0 ? 'identify' : 'track' }));
  const { end, counts } = await runImport(content, { format: 'segment', concurrency: 1, signal: controller.signal });
  expect(end).toEqual({ kind: 'interrupted', line: 0 });
  expect(counts.accepted).toBe(500 * received.length);
});

test('an address that accepts everything and is not Sluice ends the import', async () => {
  respond = (_request, response) => void response.writeHead(200).end('OK');
  const { end, counts } = await runImport(lines(3, call), { format: 'segment' });
  expect(end).toEqual({ kind: 'stopped', line: 1, reason: expect.stringMatching(/is not Sluice/) });
  expect(counts.accepted).toBe(0);
});

const LINES: Readonly<Record<FormatName, object>> = {
  native: { foreignId: 'ada', events: [{ event: 'e' }] },
  export: {
    ...{ uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002', type: 'track', event: 'e', userId: 'ada', groupId: null },
    ...{ properties: {}, timestamp: '2026-03-01T12:00:00.000Z', receivedAt: '2026-03-01T12:00:00.000Z' },
  },
  segment: { ...call(1), receivedAt: '2026-03-01T12:00:00.000Z' },
  posthog: {
    ...{ uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002', event: 'e', distinct_id: 'ada', properties: '{}' },
    ...{ timestamp: '2026-03-01T12:00:00.000000+00:00', created_at: '2026-03-01T12:00:00.000000+00:00' },
  },
  trench: {
    ...{ uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002', type: 'track', event: 'e', user_id: 'ada' },
    ...{ properties: '{}', timestamp: '2026-03-01 12:00:00.000000', parsed_at: '2026-03-01 12:00:00.000000' },
  },
};
const NAMES = Object.keys(LINES) as FormatName[];

test.each(NAMES.flatMap((format) => NAMES.filter((one) => one !== format).map((found) => [found, format] as const)))(
  'a file of the format %s is recognised when it is imported as %s, and nothing is sent',
  async (found, format) => {
    const { end, counts } = await runImport(`\nnonsense\n${JSON.stringify(LINES[found])}\n`, { format });
    expect(end).toMatchObject({ kind: 'other_format', line: 3, found: { format: found } });
    expect([counts.accepted, received.length]).toEqual([0, 0]);
  },
);

test.each([
  ['an export without an event', '{"complete":true,"events":0}\n', 'export'],
  ['CSV', '"uuid","type","event"\n"a","track","e"\n', undefined],
  ['Parquet', 'PAR1\0\0\n', undefined],
])('%s is recognised', async (_what, content, format) => {
  const { end } = await runImport(content, { format: 'native' });
  expect(end).toMatchObject({ kind: 'other_format', line: 1, found: { format } });
});

test.each(NAMES)('a file of the format %s is imported also where it continues with lines of others', async (format) => {
  await runImport([LINES[format], ...Object.values(LINES)].map((line) => `${JSON.stringify(line)}\n`).join(''), {
    format,
  });
  expect(received.length).toBeGreaterThan(0);
});
