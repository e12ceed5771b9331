import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { findFreePorts } from '@sluice/local-stack/ports';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Ingest, post, startIngest } from './testing/ingest.ts';

let away: Ingest;

beforeAll(async () => {
  const [port] = await findFreePorts(1);
  away = await startIngest([`127.0.0.1:${port}`], {
    PRODUCE_TIMEOUT_MS: '500',
    PENDING_BYTES_MAX: String(1_024 * 1_024),
    BODY_BYTES_MAX: '900000',
  });
});
afterAll(() => away.stop());

test('without Kafka the service is alive, not ready, and answers 503 with Retry-After', async () => {
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

test('memory is bounded: what does not fit is refused with 503 before its body is read', async () => {
  const body = { foreignUserGroupId: 'a', properties: { pad: 'x'.repeat(200_000) } };
  const responses = await Promise.all(Array.from({ length: 8 }, () => post(away.app, body)));
  const codes = responses.map((response) => (response.json() as { code: string }).code).sort();
  expect(codes).toEqual([...Array(5).fill('event_log_unavailable'), ...Array(3).fill('overloaded')]);
  for (const response of responses) expect(response.headers['retry-after']).toMatch(/^\d+$/);
  expect((await post(away.app, body)).json()).toMatchObject({ code: 'event_log_unavailable' });
});

test('what is answered 503 does not count against the rate of its key, however often it is sent', async () => {
  await away.setKey('limited', { rateLimit: 1 });
  await away.setKey('known');
  const known = () => post(away.app, '{', { key: 'known' });
  await expect.poll(async () => (await known()).statusCode, { timeout: 5_000 }).toBe(400);

  const events = Array.from({ length: 50 }, () => ({ event: 'e' }));
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const response = await post(away.app, { foreignUserGroupId: 'a', events }, { key: 'limited' });
    expect([response.statusCode, response.json()]).toMatchObject([503, { code: 'event_log_unavailable' }]);
  }

  const large = { foreignUserGroupId: 'a', properties: { pad: 'x'.repeat(200_000) } };
  const filling = Array.from({ length: 5 }, () => post(away.app, large));
  for (let attempt = 0; attempt < 5; attempt += 1) {
    expect((await post(away.app, large, { key: 'limited' })).statusCode).toBe(503);
  }
  await Promise.all(filling);
});

test.each([
  ['in the middle of its body', 'Content-Length: 900000', '{"foreignUserGroupId":'],
  ['in the middle of a chunk', 'Transfer-Encoding: chunked', '5\r\n{"a"'],
  ['after a broken chunk', 'Transfer-Encoding: chunked', 'no length\r\n'],
  ['after its body', 'Content-Length: 26', '{"foreignUserGroupId":"a"}'],
])('memory is given back when a client goes away %s', async (_when, header, body) => {
  if (!away.app.server.listening) await away.app.listen({ host: '127.0.0.1', port: 0 });
  const reserved = async () =>
    /^sluice_ingest_reserved_bytes (\d+)/m.exec((await away.app.inject('/metrics')).body)?.[1];
  const socket = connect((away.app.server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  socket.on('error', () => undefined).resume();
  const head = ['POST /v1/public/userGroups HTTP/1.1', 'Host: a', 'Authorization: Bearer all', header];
  socket.write(`${[...head, 'Content-Type: application/json'].join('\r\n')}\r\n\r\n`);
  await expect.poll(reserved, { timeout: 5_000 }).not.toBe('0');
  socket.write(body);
  setTimeout(() => socket.destroy(), 50);
  await expect.poll(reserved, { timeout: 5_000 }).toBe('0');
});

test('with Kafka the service is ready, and its metrics count', async () => {
  const ingest = await startIngest(inject('kafkaBrokers'));
  try {
    await expect.poll(async () => (await ingest.app.inject('/readyz')).statusCode, { timeout: 10_000 }).toBe(200);
    await post(ingest.app, { foreignUserGroupId: 'a', events: [{ event: 'e' }] });
    expect((await ingest.app.inject('/metrics')).body).toMatch(/sluice_ingest_events_accepted_total 1/);
  } finally {
    await ingest.stop();
  }
});
