import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { expectBalanced } from '../kit/audit.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { expectClickHouse, expectFileIsSound } from '../kit/doctor.ts';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { startReaders } from '../kit/readers.ts';
import { startReplicas } from '../kit/replicas.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

test('of two replicas, each and Keeper are away for a while: reads go on, and both have everything once', async () => {
  await using replicas = await startReplicas(['r1', 'r2']);
  const { r1, r2 } = replicas.servers;
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: r1.url,
    name: 'replicasaway',
    servers: { r1: { url: r1.url }, r2: { url: r2.url } },
    env: { CLICKHOUSE_REPLICATION: 'replicated' },
    envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } },
  });
  const { 'ingest-api': ingest, 'query-api': query } = running.services;
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u0', events: [{ event: 'first' }] });
  await running.settled(1);

  await expectClickHouse(running.environment, 'clickhouse.replication[r2]', 'replica r2 of shard 1');
  await expectFileIsSound(running.environment);

  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 3 });
  const paths = ['/events?limit=20', '/events?event=load&limit=5', '/users/u0', '/organizations/g'];
  await using readers = startReaders({ pipeline: running, urls: () => [query.url], paths });
  const stored = async (url: string) =>
    Number(await readClickHouse(url, `SELECT uniqExact(uuid) FROM ${running.database}.events`));
  /** Waits until more has been stored. */
  const goOn = async () => {
    const before = await stored(r1.url);
    await eventually(() => stored(r1.url)).toBeGreaterThan(before + 20);
  };
  const readOn = async () => {
    const before = readers.answeredSoFar();
    await eventually(readers.answeredSoFar).toBeGreaterThan(before + 6);
  };

  await goOn();
  for (const server of [r2, r1]) {
    await server.kill9();
    await readOn();
    await server.restart();
    await goOn();
  }
  await replicas.keeper.kill9();
  await readOn();
  await replicas.keeper.restart();
  await goOn();
  for (const name of ['r1', 'r2']) {
    const writer = running.writers[name];
    if (!writer) throw new Error(`${name} has no writer`);
    await writer.kill9();
    await goOn();
    running.writers[name] = await running.replace(writer);
    await goOn();
  }

  expect(await readers.stop(), query.log().slice(-6_000)).toEqual([]);
  const tally = await load.stop();
  await running.drained();
  for (const { url } of [r1, r2]) {
    await readClickHouse(url, `SYSTEM SYNC REPLICA ${running.database}.events`);
    await expectExactlyOnce(running, url, tally);
    const of = { CLICKHOUSE_SERVERS_FILE: '', CLICKHOUSE_SERVER: '', CLICKHOUSE_URL: url };
    // The second one does not begin where the first one has ended, which both have recorded by then.
    await expectBalanced({ environment: running.environment, of }, { before: [] });
  }

  await running.deleteUser('u0');
  const ofUser = (url: string) =>
    readClickHouse(url, `SELECT count() FROM ${running.database}.events WHERE user_id = 'u0'`).then(Number);
  await eventually(async () => (await running.get<{ total: number }>('/events?userId=u0&limit=0')).body.total).toBe(0);
  for (const { url } of [r1, r2]) await eventually(() => ofUser(url)).toBe(0);
});
