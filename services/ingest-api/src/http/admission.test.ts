import { MemoryBudget } from '@sluice/shared/http/memory-budget';
import { RateLimiter } from '@sluice/shared/http/rate-limiter';
import type { ApiKey } from '@sluice/shared/keys/key-ring';
import { TokenBucket } from '@sluice/shared/keys/token-bucket';
import Fastify from 'fastify';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { Admission, networkOf } from './admission.ts';

/** A budget that counts the reservations that are not released. */
function countedBudget(bytesMax: number): { readonly memory: Pick<MemoryBudget, 'open'>; readonly held: () => number } {
  const budget = new MemoryBudget(bytesMax);
  const held = new Set<object>();
  const memory: Pick<MemoryBudget, 'open'> = {
    open(account) {
      const reservation = budget.open(account);
      held.add(reservation);
      const release = reservation.release.bind(reservation);
      reservation.release = () => {
        held.delete(reservation);
        release();
      };
      return reservation;
    },
  };
  return { memory, held: () => held.size };
}

test.each([
  ['with a key', { authorization: 'Bearer k' }],
  ['without a key', {}],
])('a request %s that finds no memory leaves nothing behind', async (_what, headers) => {
  const key: ApiKey = {
    id: 'k',
    hash: 'k',
    workspace: 'w',
    scopes: ['ingest'],
    bucket: new TokenBucket(),
  };
  // Less than a request takes before its body arrives.
  const { memory, held } = countedBudget(1_000);
  const admission = new Admission({
    keys: { name: 'keys', loaded: true, find: () => key, start: async () => undefined, stop: async () => undefined },
    clock: { isCompared: true, problem: () => undefined },
    limiter: new RateLimiter({ perSecondDefault: undefined, registry: new Registry() }),
    memory,
    bodyBytesMax: 1_000,
    rowBytesMax: 1_000,
  });
  const app = Fastify();
  admission.register(app);
  const onRequest = admission.admitCalls((request) => request.headers.authorization?.replace('Bearer ', ''));
  app.post('/', { onRequest }, async () => 'admitted');
  await expect(app.inject({ method: 'POST', url: '/', headers })).resolves.toMatchObject({ statusCode: 503 });
  expect(held()).toBe(0);
});

test.each([
  ['203.0.113.7', '203.0.113.0/24'],
  ['::ffff:203.0.113.7', '203.0.113.0/24'],
  ['203.0.113.7:61234', '203.0.113.0/24'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
  ['2001:0DB8:0001::9', '2001:db8:1::/48'],
  ['2001:db8::1', '2001:db8:0::/48'],
  ['::1:2:3:4:5:6:7', '0:1:2::/48'],
  ['64:ff9b::203.0.113.7', '64:ff9b:0::/48'],
  ['fe80::1%eth0', 'fe80:0:0::/48'],
  ['::1', '0:0:0::/48'],
  ['unknown', 'network unknown'],
  ['', 'network unknown'],
  [undefined, 'network unknown'],
])('the network of %s is %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
