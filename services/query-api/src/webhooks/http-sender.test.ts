import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { Receiver } from '../testing/webhooks.ts';
import { AllowedAddresses } from './allowed-addresses.ts';
import { HttpSender, retryAfterOf } from './http-sender.ts';
import { ReceiverNames } from './receiver-names.ts';
import { newSecret } from './webhook.ts';

const MESSAGE = { id: 'msg_1', body: '{}' } as const;
const never = new AbortController().signal;

async function send(url: string, networks: readonly string[], timeoutMs = 600_000) {
  const sender = new HttpSender({ addresses: new AllowedAddresses(networks), names: new ReceiverNames(), timeoutMs });
  try {
    return await sender.send(url, MESSAGE, [newSecret()], never);
  } finally {
    sender.close();
  }
}

test('an address that is not public is never connected to, whether it is in the URL or what a name stands for', async () => {
  await using receiver = await Receiver.start();
  for (const host of ['127.0.0.1', 'localhost', '127.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]']) {
    const attempt = await send(`http://${host}:${receiver.port}/`, []);
    expect([host, attempt.isDelivered, attempt.status]).toEqual([host, false, 0]);
    expect(attempt.error).toMatch(/is not a public address$/);
  }
  expect(receiver.received).toEqual([]);
  expect(await send(`http://localhost:${receiver.port}/`, ['127.0.0.1', '::1'])).toMatchObject({ isDelivered: true });
});

test('the address that was checked is the one that is connected to: a name is looked up once', async () => {
  await using receiver = await Receiver.start();
  await using rebound = await Receiver.start('127.0.0.2', receiver.port);
  const looked: string[] = [];
  // As the name server of an attacker: the first answer is allowed, and later ones are not.
  const find = async (name: string): Promise<readonly LookupAddress[]> => {
    looked.push(name);
    return [{ address: looked.length === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }];
  };
  const sender = new HttpSender({ addresses: new AllowedAddresses(['127.0.0.1']), timeoutMs: 60_000, names: { find } });
  const toName = () => sender.send(`http://receiver.test:${receiver.port}/`, MESSAGE, [newSecret()], never);
  expect(await toName()).toMatchObject({ isDelivered: true });
  expect(looked).toEqual(['receiver.test']);
  expect(receiver.received).toHaveLength(1);
  sender.close();
  // A new connection has a check of its own.
  expect(await toName()).toMatchObject({ isDelivered: false, error: 'receiver.test is not a public address' });
  expect(looked).toHaveLength(2);
  expect(rebound.received).toEqual([]);
  sender.close();
});

test('a name of which one address is not allowed is not connected to at all', async () => {
  await using receiver = await Receiver.start();
  const find = async () => ['127.0.0.1', '10.0.0.1'].map((address) => ({ address, family: 4 }));
  const sender = new HttpSender({ addresses: new AllowedAddresses(['127.0.0.1']), timeoutMs: 60_000, names: { find } });
  const attempt = await sender.send(`http://receiver.test:${receiver.port}/`, MESSAGE, [newSecret()], never);
  expect(attempt).toMatchObject({ isDelivered: false, error: 'receiver.test is not a public address' });
  expect(receiver.received).toEqual([]);
  sender.close();
});

test('Retry-After is read in seconds and as a date, and nothing else is', () => {
  const nowMs = Date.UTC(2026, 2, 1);
  const read = (header: string | undefined) => retryAfterOf(header, nowMs);
  expect(['0', '120', 'Sun, 01 Mar 2026 00:00:07 GMT', 'Sat, 28 Feb 2026 00:00:00 GMT'].map(read)).toEqual([
    ...[0, 120_000, 7_000, 0],
  ]);
  expect([undefined, '', '-1', '1.5 s', 'soon'].map(read)).toEqual(Array(5).fill(undefined));
});

test('a redirect is not followed', async () => {
  await using receiver = await Receiver.start();
  await using elsewhere = await Receiver.start();
  receiver.behaviour = (_, response) => response.writeHead(307, { location: elsewhere.url }).end();
  expect(await send(receiver.url, ['127.0.0.1'])).toMatchObject({ isDelivered: false, status: 307 });
  expect(elsewhere.received).toEqual([]);
});

test('a receiver that does not answer in time is given up', async () => {
  await using receiver = await Receiver.start();
  receiver.behaviour = () => undefined;
  const attempt = await send(receiver.url, ['127.0.0.1'], 200);
  expect(attempt).toMatchObject({ isDelivered: false, status: 0, error: 'the receiver took longer than 200 ms' });
});

test('a response without an end is cut off after 4 kB, and its status counts', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n');
    const flood = () => {
      while (socket.writable && socket.write('x'.repeat(16_384)));
    };
    socket.on('drain', flood);
    flood();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const closed = new Promise((resolve) => server.once('connection', (socket) => socket.once('close', resolve)));
  const { port } = server.address() as AddressInfo;
  expect(await send(`http://127.0.0.1:${port}/`, ['127.0.0.1'])).toMatchObject({ isDelivered: true, status: 200 });
  await closed;
  server.close();
});
