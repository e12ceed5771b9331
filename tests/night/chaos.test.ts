import { expect, test } from 'vitest';
import { runChaos } from '../kit/chaos/chaos.ts';
import { faultsOf, NO_FAULTS } from '../kit/verify-delivery.ts';

test('half a minute of random faults loses, doubles and invents nothing, webhooks get everything, and an audit balances', async () => {
  const { delivery, faults, receipts, unbalanced } = await runChaos({
    seed: 7,
    minutes: 0.5,
    onProgress: () => undefined,
  });
  expect(faultsOf(delivery)).toEqual(NO_FAULTS);
  expect(delivery.required).toBeGreaterThan(0);
  expect(faults.length).toBeGreaterThan(5);
  for (const { missing, wrong, required } of receipts) {
    expect({ missing, wrong }).toEqual({ missing: [], wrong: [] });
    expect(required).toBeGreaterThan(0);
  }
  expect(receipts).toHaveLength(2);
  expect(unbalanced).toEqual([]);
});

test('two ranges of two mirrors: one server of a range at a time fails or is wiped, no request fails, mirrors are equal, and their audits balance', async () => {
  const topology = { shards: 2, mirrors: 2 };
  const { delivery, faults, unbalanced, ofServers } = await runChaos({
    seed: 39,
    minutes: 0.5,
    topology,
    onProgress: () => undefined,
  });
  expect(faultsOf(delivery)).toEqual(NO_FAULTS);
  expect(delivery.required).toBeGreaterThan(0);
  expect(faults.filter(({ target }) => target.startsWith('server')).map(({ kind }) => kind)).toContain('wipe');
  expect(ofServers?.failed).toEqual([]);
  expect(ofServers?.different).toEqual([]);
  expect(ofServers?.answered).toBeGreaterThan(0);
  expect(unbalanced).toEqual([]);
});
