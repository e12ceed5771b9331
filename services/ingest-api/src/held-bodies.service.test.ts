import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { type Ingest, post, startIngest } from './testing/ingest.ts';

const BUDGET_BYTES = 3_500_000;
const BODY_BYTES = 240_000;
const SENT_BYTES = 200_000;

/** How many times its limit a body is that the buffers of no connection take. */
const PARTS = 100;

let ingest: Ingest;
let sockets: Socket[] = [];
let refused = 0;

beforeAll(async () => {
  ingest = await startIngest(inject('kafkaBrokers'), {
    PENDING_BYTES_MAX: String(BUDGET_BYTES),
    BODY_BYTES_MAX: '250000',
    TRUSTED_PROXIES: 'loopback',
  });
  await ingest.setKey('other', { workspace: 'other' });
  await until('the key to be known', async () => (await post(ingest.app, '{', { key: 'other' })).statusCode === 400);
  await ingest.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => ingest.stop());
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  refused = 0;
  await eventually(() => reservedBytes()).toBe(0);
});

async function reservedBytes(): Promise<number> {
  const { body } = await ingest.app.inject('/metrics');
  return Number(/^sluice_ingest_reserved_bytes (\d+)/m.exec(body)?.[1]);
}

/** Sends the head of a request over a connection of its own. Nobody reads the response yet. */
async function sendHead(path: string, ...headers: readonly string[]): Promise<Socket> {
  const socket = connect((ingest.app.server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const head = [`POST ${path} HTTP/1.1`, 'Host: a', 'Content-Type: application/json', ...headers];
  socket.setEncoding('utf8').write(`${head.join('\r\n')}\r\n\r\n`);
  return socket;
}

/** Sends the head of a request, as a proxy passes it on, and counts its refusal. */
async function begin(path: string, header: string): Promise<Socket> {
  const socket = await sendHead(path, 'Transfer-Encoding: chunked', header);
  return socket.on('data', (text: string) => {
    if (text.startsWith('HTTP/1.1 503')) refused += 1;
  });
}

/** @throws when the connection is closed before everything is sent */
const write = (socket: Socket, text: string) => promisify<string, void>(socket.write.bind(socket))(text);

/** Sends nearly all of a body, and holds it so. */
function send(socket: Socket): void {
  socket.write(`${BODY_BYTES.toString(16)}\r\n${' '.repeat(SENT_BYTES)}`);
}

/**
 * Holds bodies one after the other until one is refused. It looks often, since the service ends a body that does not go on
 * after some seconds.
 */
async function hold(path: string, header: (index: number) => string): Promise<void> {
  for (let index = 0; refused === 0; index += 1) {
    const before = await reservedBytes();
    send(await begin(path, header(index)));
    const isHeld = async () => refused > 0 || (await reservedBytes()) >= before + SENT_BYTES;
    await eventually(isHeld, { interval: 5 }).toBe(true);
  }
}

function callsWithKey(address: string, pad: number) {
  const payload = JSON.stringify({
    batch: [{ type: 'track', event: 'e', userId: 'a', properties: { pad: 'x'.repeat(pad) } }],
    writeKey: 'other',
  });
  return ingest.app.inject({ method: 'POST', url: '/v1/batch', headers: { 'x-forwarded-for': address }, payload });
}

test('bodies that were admitted before memory was full are refused as they arrive', async () => {
  const admitted: Socket[] = [];
  for (let index = 0; index < 40; index += 1) {
    admitted.push(await begin('/v1/public/userGroups', 'Authorization: Bearer all'));
  }
  await eventually(reservedBytes).toBeGreaterThanOrEqual(40 * 16 * 1_024);
  for (const socket of admitted) send(socket);
  await eventually(() => refused).toBeGreaterThanOrEqual(40 - BUDGET_BYTES / 2 / SENT_BYTES);
  expect(await reservedBytes()).toBeLessThanOrEqual(BUDGET_BYTES / 2);
  expect((await post(ingest.app, { foreignUserGroupId: 'a' }, { key: 'other' })).statusCode).toBe(202);
});

test('who holds bodies without a key keeps nobody out who has one in the body, or in the header', async () => {
  await hold('/v1/batch', (index) => `X-Forwarded-For: 198.51.100.${index}`);
  expect((await callsWithKey('198.51.100.200', 150_000)).statusCode, 'from the same network').toBe(503);
  expect((await callsWithKey('203.0.113.9', 150_000)).statusCode, 'from another network').toBe(200);
  expect((await callsWithKey('203.0.113.9, 127.0.0.1', 150_000)).statusCode, 'by way of two proxies').toBe(200);
  expect((await post(ingest.app, { foreignUserGroupId: 'a' }, { key: 'other' })).statusCode).toBe(202);
});

test('who holds bodies without a key from many networks leaves memory for all others', async () => {
  await hold('/v1/batch', (index) => `X-Forwarded-For: 198.51.${index}.1`);
  expect((await callsWithKey('203.0.113.9', 100)).statusCode).toBe(200);
  const body = { foreignUserGroupId: 'a', properties: { pad: 'x'.repeat(60_000) } };
  expect((await post(ingest.app, body, { key: 'other' })).statusCode).toBe(202);
});

test.each(['Transfer-Encoding: chunked', `Content-Length: ${PARTS * BODY_BYTES}`])(
  'a client that sends a body over the limit (%s) can read why it is refused, also when it reads only at its end',
  async (header) => {
    const socket = await sendHead('/v1/public/userGroups', 'Authorization: Bearer other', header);
    const part = 'x'.repeat(BODY_BYTES);
    const isChunked = header.startsWith('Transfer');
    for (let parts = 0; parts < PARTS; parts += 1) {
      await write(socket, isChunked ? `${BODY_BYTES.toString(16)}\r\n${part}\r\n` : part);
    }
    if (isChunked) await write(socket, '0\r\n\r\n');
    const [response] = await once(socket, 'data');
    expect(response).toMatch(/^HTTP\/1.1 413 .*body_too_large/s);
  },
);
