import { once } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { TimerOptions } from 'node:timers';
import timers from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { findFreePorts } from '@sluice/local-stack/ports';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { type Ingest, post, startIngest } from './testing/ingest.ts';

const BUDGET_BYTES = 3_500_000;

/** How long rows wait for others, in milliseconds. No other wait is as long. */
const LINGER_MS = 997;

/** While it is closed, rows that linger are not sent. */
let gate = Promise.resolve();

// `sleep` waits by it.
const { setTimeout: delay } = timers;
timers.setTimeout = async <T>(ms?: number, value?: T, options?: TimerOptions) => {
  if (ms !== LINGER_MS) return await delay(ms, value, options);
  await gate;
  return value as T;
};
syncBuiltinESMExports();

/** @returns what opens it again */
function closeGate(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  gate = promise;
  onTestFinished(() => resolve());
  return resolve;
}

let away: Ingest;
let slow: Ingest;

beforeAll(async () => {
  const [port] = await findFreePorts(1);
  away = await startIngest([`127.0.0.1:${port}`], { PRODUCE_TIMEOUT_MS: '500' }, { waitUntilReady: false });
  slow = await startIngest(inject('kafkaBrokers'), {
    PRODUCE_LINGER_MS: String(LINGER_MS),
    PENDING_BYTES_MAX: String(BUDGET_BYTES),
    BODY_BYTES_MAX: '250000',
  });
});
afterAll(async () => {
  await away.stop();
  await slow.stop();
});

const reservedBytes = async () =>
  Number(/^sluice_ingest_reserved_bytes (\d+)/m.exec((await slow.app.inject('/metrics')).body)?.[1]);

/** Sends the head of a submission over a connection of its own. */
async function beginRequest(key: string, header: string): Promise<Socket> {
  if (!slow.app.server.listening) await slow.app.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect((slow.app.server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  socket.on('error', () => undefined).resume();
  const head = ['POST /v1/public/userGroups HTTP/1.1', 'Host: a', `Authorization: Bearer ${key}`, header];
  socket.write(`${[...head, 'Content-Type: application/json'].join('\r\n')}\r\n\r\n`);
  return socket;
}

test('without Kafka the service is alive, is not ready, and responds 503 with Retry-After', async () => {
  expect((await away.app.inject('/livez')).statusCode).toBe(200);
  expect((await away.app.inject('/readyz')).json()).toEqual({
    status: 'unavailable',
    missing: ['Kafka cannot be reached'],
  });
  const response = await post(away.app, { foreignUserGroupId: 'a' });
  expect(response.statusCode).toBe(503);
  expect(response.headers['retry-after']).toMatch(/^\d+$/);
  expect(response.json()).toMatchObject({ code: 'event_log_unavailable' });
  expect(response.body).not.toMatch(/kafka|127\.0\.0\.1/i);
});

test('memory is bounded: a request that does not fit gets 503, and one key leaves room for others', async () => {
  await slow.setKey('other', { workspace: 'other' });
  const body = { foreignUserGroupId: 'a', properties: { pad: 'x'.repeat(60_000) } };
  await eventually(async () => (await post(slow.app, '{', { key: 'other' })).statusCode).toBe(400);
  const open = closeGate();
  const filling = Array.from({ length: 60 }, () => post(slow.app, body));
  let refused = 0;
  for (const response of filling) void response.then(() => (refused += 1));
  const isFull = async () => refused > 0 && (await reservedBytes()) > BUDGET_BYTES / 3;
  await eventually(isFull).toBe(true);
  const held = await reservedBytes();
  expect(held).toBeLessThanOrEqual(BUDGET_BYTES / 2);
  const other = post(slow.app, body, { key: 'other' });
  await eventually(reservedBytes).toBeGreaterThan(held);
  open();
  expect((await other).statusCode).toBe(202);
  const responses = await Promise.all(filling);
  expect(new Set(responses.map(({ statusCode }) => statusCode))).toEqual(new Set([202, 503]));
  for (const response of responses.filter(({ statusCode }) => statusCode === 503)) {
    expect(response.headers['retry-after']).toMatch(/^\d+$/);
    expect(response.json()).toMatchObject({ code: 'overloaded' });
  }
  expect(await reservedBytes()).toBe(0);
  expect((await post(slow.app, body)).statusCode).toBe(202);
});

test.each([
  ['/v1/public/userGroups', '"foreignUserGroupId":"a","events"', '"event":"e"'],
  ['/v1/batch', '"batch"', '"type":"track","event":"e","userId":"a"'],
])('rows reserve the bytes that they have, also when numbers are written out: %s', async (path, name, fields) => {
  const event = `{${fields},"properties":{"a":[${Array(1_000).fill('1e20').join()}]}}`;
  const body = `{${name}:[${Array(30).fill(event).join()}]}`;
  const open = closeGate();
  const pending = post(slow.app, body, { path });
  await eventually(reservedBytes).toBeGreaterThan(30 * 1_000 * '100000000000000000000,'.length);
  open();
  expect((await pending).statusCode).toBeLessThan(300);
  expect(await reservedBytes()).toBe(0);
});

test('rows of more than four times the largest body are refused, whatever becomes of their numbers', async () => {
  const event = `{"event":"e","properties":{"a":[${Array(1_000).fill('1e20').join()}]}}`;
  const body = `{"foreignUserGroupId":"a","events":[${Array(48).fill(event).join()}]}`;
  expect(body.length).toBeLessThan(250_000);
  expect((await post(slow.app, body)).json()).toMatchObject({ status: 413, code: 'body_too_large' });
  expect(await reservedBytes()).toBe(0);
});

test('a submission that Kafka does not acknowledge in time does not count against the rate of its key', async () => {
  const env = { PRODUCE_LINGER_MS: String(LINGER_MS), PRODUCE_TIMEOUT_MS: '200' };
  const timed = await startIngest(inject('kafkaBrokers'), env);
  const open = closeGate();
  try {
    await timed.setKey('limited', { rateLimit: 1 });
    await eventually(async () => (await post(timed.app, '{', { key: 'limited' })).statusCode).toBe(400);
    const body = { foreignUserGroupId: 'a', events: Array.from({ length: 50 }, () => ({ event: 'e' })) };
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const response = await post(timed.app, body, { key: 'limited' });
      expect(response.json()).toMatchObject({ status: 503, code: 'event_log_unavailable' });
    }
  } finally {
    open();
    await timed.stop();
  }
});

test('a body for which there is no memory does not count against the rate of its key', async () => {
  const fillers = ['first', 'second', 'third', 'fourth'];
  for (const key of fillers) await slow.setKey(key, { workspace: 'full' });
  await slow.setKey('limited', { workspace: 'full', rateLimit: 1 });
  await eventually(async () => (await post(slow.app, '{', { key: 'limited' })).statusCode).toBe(400);
  // Bodies that were admitted before memory was full, and lack their last byte, hold their memory for seconds.
  const sockets: Socket[] = [];
  for (const key of [...fillers, ...fillers, ...fillers]) {
    sockets.push(await beginRequest(key, 'Content-Length: 200000'));
  }
  await eventually(reservedBytes).toBeGreaterThanOrEqual(sockets.length * 16 * 1_024);
  for (const socket of sockets) socket.write('x'.repeat(199_999));
  await eventually(reservedBytes, { interval: 20 }).toBeGreaterThan(0.58 * BUDGET_BYTES);
  // Small enough to be admitted, and after decompression larger than what the workspace has left.
  const compressed = gzipSync(JSON.stringify({ foreignUserGroupId: 'a', properties: { pad: 'x'.repeat(249_000) } }));
  const headers = { 'content-encoding': 'gzip' };
  for (let attempt = 0; attempt < 4; attempt += 1) {
    const response = await post(slow.app, compressed, { key: 'limited', headers });
    expect(response.json()).toMatchObject({ status: 503, code: 'overloaded' });
  }
  for (const socket of sockets) socket.destroy();
  await eventually(reservedBytes).toBe(0);
});

test.each([
  ['in the middle of its body', 'Content-Length: 200000', '{"foreignUserGroupId":'],
  ['in the middle of a chunk', 'Transfer-Encoding: chunked', '5\r\n{"a"'],
  ['after a broken chunk', 'Transfer-Encoding: chunked', 'no length\r\n'],
  ['after its body', 'Content-Length: 26', '{"foreignUserGroupId":"a"}'],
])('memory is released when a client disconnects %s', async (_when, header, body) => {
  const socket = await beginRequest('all', header);
  await eventually(reservedBytes).not.toBe(0);
  socket.write(body);
  setTimeout(() => socket.destroy(), 50);
  await eventually(reservedBytes).toBe(0);
});

test('with Kafka the service is ready, and counts accepted events', async () => {
  const ingest = await startIngest(inject('kafkaBrokers'));
  try {
    await eventually(async () => (await ingest.app.inject('/readyz')).statusCode).toBe(200);
    await post(ingest.app, { foreignUserGroupId: 'a', events: [{ event: 'e' }] });
    expect((await ingest.app.inject('/metrics')).body).toMatch(/sluice_ingest_accepted_events_total 1/);
  } finally {
    await ingest.stop();
  }
});
