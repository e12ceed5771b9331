import { expect, test } from 'vitest';
import { newSecret, ROTATION_MS, secretsOf, type Webhook } from './webhook.ts';

const webhook: Webhook = {
  ...{ id: '0197c0de-0000-7000-8000-000000000000', workspace: 'a', url: 'https://a.example/', filter: {} },
  ...{
    kind: 'events',
    batched: false,
    content: {},
    secret: 'new',
    previousSecret: 'before',
    previousSecretUntilMs: 5_000,
    createdAtMs: 0,
  },
};

test('the secret before signs up to its time, and not from then on', () => {
  expect(secretsOf(webhook, 0)).toEqual(['new', 'before']);
  expect(secretsOf(webhook, 4_999)).toEqual(['new', 'before']);
  expect(secretsOf(webhook, 5_000)).toEqual(['new']);
  expect(secretsOf(webhook, 5_000 + ROTATION_MS)).toEqual(['new']);
});

test('without a rotation one secret signs, at any time', () => {
  const never = { ...webhook, previousSecret: '', previousSecretUntilMs: 0 };
  for (const nowMs of [0, 1, Date.now()]) expect(secretsOf(never, nowMs)).toEqual(['new']);
});

test('a secret is 32 bytes that no other one has', () => {
  const secrets = Array.from({ length: 100 }, newSecret);
  expect(new Set(secrets).size).toBe(100);
  for (const secret of secrets) expect(Buffer.from(secret.replace(/^whsec_/, ''), 'base64')).toHaveLength(32);
});
