import { expect, test, vi } from 'vitest';
import { type BearerToken, BearerTokens, tokenOfAws } from './bearer-login.ts';

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
