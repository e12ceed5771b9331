import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type BearerToken, BearerTokens, tokenOfAws, tokenOfServer } from './bearer-login.ts';

const MINUTE_MS = 60_000;

function tokensAt() {
  const clock = { nowMs: 0 };
  let issued = 0;
  const request = vi.fn(async (): Promise<BearerToken> => {
    issued += 1;
    return { value: `token ${issued}`, lifetimeMs: 10 * MINUTE_MS };
  });
  const warn = vi.fn();
  return { clock, request, warn, tokens: new BearerTokens(request, { warn }, () => clock.nowMs) };
}

test('a token is kept for half of its time, and many logins at once ask for one', async () => {
  const { clock, request, tokens } = tokensAt();
  expect(await Promise.all([tokens.current(), tokens.current()])).toEqual(['token 1', 'token 1']);
  clock.nowMs = 5 * MINUTE_MS - 1;
  expect(await tokens.current()).toBe('token 1');
  clock.nowMs = 5 * MINUTE_MS;
  expect(await tokens.current()).toBe('token 2');
  expect(request).toHaveBeenCalledTimes(2);
});

test('a token that cannot be renewed is used until shortly before its end, with a warning', async () => {
  const { clock, request, warn, tokens } = tokensAt();
  await tokens.current();
  request.mockRejectedValue(new Error('down'));
  clock.nowMs = 9 * MINUTE_MS;
  expect(await tokens.current()).toBe('token 1');
  expect(warn).toHaveBeenCalledOnce();
  clock.nowMs = 10 * MINUTE_MS - 20_000;
  await expect(tokens.current()).rejects.toThrow('down');
  // The next login asks again.
  request.mockResolvedValue({ value: 'token of then', lifetimeMs: 10 * MINUTE_MS });
  expect(await tokens.current()).toBe('token of then');
});

test.each([
  ['does not answer', () => undefined],
  [
    'begins an answer and does not end it',
    (response: { write(text: string): void }) => response.write('{"access_token":"a'),
  ],
])('a server of tokens that %s is given up, and named', async (_what, answer) => {
  const server = createServer((_, response) => void answer(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const KAFKA_SASL_TOKEN_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await expect(tokenOfServer({ KAFKA_SASL_TOKEN_URL } as Parameters<typeof tokenOfServer>[0], 200)).rejects.toThrow(
    /the token server cannot be reached \(.*timeout/i,
  );
});

test('a token that Kafka has refused is not used again, and one that says nothing of its time is used once', async () => {
  const { request, tokens } = tokensAt();
  tokens.forget(await tokens.current());
  expect(await tokens.current()).toBe('token 2');
  request.mockResolvedValue({ value: 'brief', lifetimeMs: 0 });
  tokens.forget('token 2');
  await tokens.current();
  await tokens.current();
  expect(request).toHaveBeenCalledTimes(4);
});

test('a token of AWS is a signed address of the region, and lives for a quarter of an hour', async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret-of-aws');
  const { value, lifetimeMs } = await tokenOfAws('eu-central-1');
  const address = new URL(Buffer.from(value, 'base64url').toString());
  expect([address.host, address.searchParams.get('Action')]).toEqual([
    'kafka.eu-central-1.amazonaws.com',
    'kafka-cluster:Connect',
  ]);
  expect(address.searchParams.get('X-Amz-Credential')).toMatch(/^AKIDEXAMPLE\/.*\/eu-central-1\/kafka-cluster\//);
  expect(lifetimeMs).toBeGreaterThan(14 * MINUTE_MS);
  vi.unstubAllEnvs();
});
