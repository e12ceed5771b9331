import { findFreePorts } from '@sluice/local-stack/ports';
import { expect, inject, onTestFinished, test } from 'vitest';
import { diagnose } from '../kit/doctor.ts';
import { startHttpRouter } from '../kit/http-router.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { startReplicas } from '../kit/replicas.ts';
import { startService } from '../kit/service.ts';

test('a writer and query-api end when an address of the file leads to two replicas by turns', async () => {
  await using replicas = await startReplicas(['r1', 'r2', 'r3']);
  const { r1, r2, r3 } = replicas.servers;
  let [isOne, turn] = [true, 0];
  await using balancer = await startHttpRouter(() => (isOne || turn++ % 2 === 0 ? r2 : r3).url);
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: r1.url,
    name: 'replicaaddresses',
    servers: { r1: { url: r1.url }, r2: { url: balancer.url } },
    env: { CLICKHOUSE_REPLICATION: 'replicated' },
  });
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u', events: [{ event: 'e' }] });
  await running.settled(1);
  // Without the mode, it would show streams that lack events.
  const [port = 0] = await findFreePorts(1);
  const env = { ...running.environmentOf('query-api'), CLICKHOUSE_REPLICATION: 'none' };
  const alone = startService('query-api', port, env);
  onTestFinished(() => alone.kill9());
  expect(await alone.endsItself()).toBe(1);
  expect(alone.log()).toContain('the tables of the database are replicated');
  const { results } = await diagnose(['query-api'], env);
  expect(results.filter(({ state }) => state === 'wrong')).toContainEqual(
    expect.objectContaining({ found: expect.stringContaining('are replicated: set CLICKHOUSE_REPLICATION') }),
  );

  isOne = false;
  // Both replicas have to know it before anything is erased.
  expect((await running.deleteUser('u')).status).toBe(202);
  const { writer, 'query-api': queryApi } = running.services;
  const ending = [writer, queryApi, ...Object.values(running.writers)];
  expect(await Promise.all(ending.map((service) => service.endsItself()))).toEqual(ending.map(() => 1));
  for (const { log } of ending) expect(log()).toContain('several servers answer at the address of ClickHouse (r2, r3)');
});
