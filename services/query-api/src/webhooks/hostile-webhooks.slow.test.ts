import { createServer, type Socket } from 'node:net';
import { createDatabase, type TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent } from '../testing/query-service.ts';
import { manage, Receiver, startWebhooks, type WebhookService } from '../testing/webhooks.ts';

let database: TestDatabase;
let query: WebhookService;

beforeAll(async () => {
  database = await createDatabase(inject('clickhouseUrl'));
  query = await startWebhooks(database, { WEBHOOK_TIMEOUT_MS: '1000' });
});
afterAll(async () => {
  await query[Symbol.asyncDispose]();
  await database.release();
});

const URL = 'https://example.com/hook';

test.each([
  [{ url: 'file:///etc/passwd' }],
  [{ url: 'javascript:alert(1)' }],
  [{ url: 'gopher://example.com/' }],
  [{ url: '//example.com/' }],
  [{ url: 'https://example.com/#part' }],
  [{ url: 'https://:password@example.com/' }],
  [{ url: 'http://0xa.1/' }],
  [{ url: 'http://10.1/' }],
  [{ url: 'http://[::ffff:10.0.0.1]/' }],
  [{ url: 'http://[fd00:ec2::254]/' }],
  [{ url: 'http://100.64.0.1/' }],
  [{ url: ['https://example.com/'] }],
  [{ url: URL, headers: { 'webhook-signature': 'v1,forged' } }],
  [{ url: URL, secret: 'whsec_AAAA' }],
  [{ url: URL, workspace: 'b' }],
  [{ url: URL, state: 'active' }],
  [{ url: URL, filter: { workspaceId: 'b' } }],
  [{ url: URL, filter: { 'event[regex]': '(a+)+$' } }],
  [{ url: URL, filter: { event: ['a', 'b'] } }],
  [{ url: URL, filter: ['event'] }],
  [{ url: URL, batched: 'yes' }],
] as [object][])('%j is refused', async (given) => {
  const { status, body } = await manage(query, 'POST', '/webhooks', given, 'd');
  expect([status, body['code']]).toEqual([400, 'invalid_request']);
});

test('line breaks in an address reach no header', async () => {
  await using receiver = await Receiver.start();
  const url = `${receiver.url}\r\nx-forged: yes\r\n\r\n`;
  const { status, body } = await manage(query, 'POST', '/webhooks', { url }, 'e');
  if (status === 201) await manage(query, 'POST', `/webhooks/${body.id}/test`, undefined, 'e');
  expect(receiver.received.filter(({ headers }) => 'x-forged' in headers)).toEqual([]);
});

/** Starts a receiver that speaks to the socket itself. */
async function raw(speak: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => speak(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}/`, [Symbol.dispose]: () => server.close() };
}

test.each<[string, (socket: Socket) => void]>([
  ['never ends its headers', (socket) => socket.write('HTTP/1.1 200 OK\r\nx-a: ')],
  ['never ends its body', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n')],
  [
    'sends a header of a mebibyte',
    (socket) => socket.write(`HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(1_048_576)}\r\n\r\n`),
  ],
  [
    'switches protocols',
    (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  ],
  ['sends interim responses alone', (socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100))],
])('a receiver that %s has not taken the message', async (_, speak) => {
  using receiver = await raw(speak);
  const { body } = await manage(query, 'POST', '/webhooks', { url: receiver.url }, 'f');
  const sent = await manage(query, 'POST', `/webhooks/${body.id}/test`, undefined, 'f');
  expect(sent.body).toMatchObject({ delivered: false });
  await manage(query, 'DELETE', `/webhooks/${body.id}`, undefined, 'f');
});

test('a secret is in the responses that create it alone, and in no log', async () => {
  await using receiver = await Receiver.start();
  const { body } = await manage(query, 'POST', '/webhooks', { url: receiver.url }, 'g');
  const rotated = (await manage(query, 'POST', `/webhooks/${body.id}/rotate`, undefined, 'g')).body;
  receiver.behaviour = ({ headers }, response) => response.writeHead(500).end(String(headers['webhook-signature']));
  await query.store('g', [anEvent()]);
  await eventually(() => receiver.received.length).toBeGreaterThan(0);
  for (const path of ['', `/${body.id}`, `/${body.id}/deliveries`]) {
    const shown = JSON.stringify((await manage(query, 'GET', `/webhooks${path}`, undefined, 'g')).body);
    for (const text of [body.secret, rotated.secret, 'whsec_', 'v1,']) expect(shown).not.toContain(text);
  }
  const lines = JSON.stringify(query.log);
  for (const text of [body.secret, rotated.secret, 'whsec_']) expect(lines).not.toContain(text);
  await manage(query, 'DELETE', `/webhooks/${body.id}`, undefined, 'g');
});
