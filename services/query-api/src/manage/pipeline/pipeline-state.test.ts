import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { declareServerMetrics } from '../../store/servers/server-metrics.ts';
import { readServersOf } from './pipeline-state.ts';

test('servers are those that the metrics of query-api know, in their order', async () => {
  const registry = new Registry();
  declareServerMetrics(
    registry,
    async () => [
      { name: 'b1', reason: undefined, behindSeconds: 0.5, replication: undefined, isChosen: true },
      { name: 'a2', reason: 'does not respond', behindSeconds: undefined, replication: undefined, isChosen: false },
    ],
    () => ({ modifiedMs: undefined, isValid: true }),
  );
  expect(readServersOf(await registry.metrics())).toEqual([
    { name: 'b1', readable: true, behindSeconds: 0.5, chosen: true },
    { name: 'a2', readable: false, behindSeconds: null, chosen: false },
  ]);
  expect(readServersOf(await new Registry().metrics())).toEqual([]);
});
