import { runCheck } from '@sluice/cli/servers/check-file';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { diagnose } from '../kit/doctor.ts';
import { startLoad } from '../kit/load.ts';
import { readMetric } from '../kit/metrics.ts';
import { type PipelineServer, startPipeline } from '../kit/pipeline.ts';
import { startReaders, untilBothGoOn } from '../kit/readers.ts';
import { startShards } from '../kit/replicas.ts';
import { expectAllReceived, StreamFollower } from '../kit/stream-follower.ts';
import { together } from '../kit/together.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

/** The ranges of the six partitions of each topic; servers of one letter are replicas of each other. */
const RANGES = { a1: '0-2', a2: '0-2', b1: '3-5', b2: '3-5' } as const;

test('two shards of two replicas, each server killed once: no read fails, and together they have everything once', async () => {
  await using shards = await startShards({ a1: '1', a2: '1', b1: '2', b2: '2' });
  const servers = Object.fromEntries(
    Object.entries(shards.servers).map(([name, { engine, relay }]): [string, PipelineServer] => {
      const partitions = RANGES[name as keyof typeof RANGES];
      return [name, { url: engine.url, native: `127.0.0.1:${relay.port}`, partitions }];
    }),
  );
  const { a1, a2, b1, b2 } = shards.servers;
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: a1.engine.url,
    name: 'replicashards',
    servers,
    env: { CLICKHOUSE_REPLICATION: 'replicated' },
    // On a busy machine a server may take more than a minute to catch up, while another one is away.
    envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } },
  });
  const { 'ingest-api': ingest, 'query-api': query } = running.services;
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u0', events: [{ event: 'first' }] });
  await running.settled(1);

  const { results } = await diagnose(['writer', 'query-api'], running.environment);
  const ofClickHouse = results.filter(({ name }) => name.startsWith('clickhouse.'));
  expect(ofClickHouse.filter(({ state }) => state === 'wrong')).toEqual([]);
  expect(ofClickHouse).toContainEqual(
    expect.objectContaining({
      name: 'clickhouse.shards',
      found: 'shard 1 has the partitions 0-2, shard 2 has the partitions 3-5',
    }),
  );
  const lines: string[] = [];
  const env = running.environment;
  expect(await runCheck(env['CLICKHOUSE_SERVERS_FILE'] ?? '', env, (line) => lines.push(line)), lines.join()).toBe(0);

  const filters = ['', '?properties.key[contains]=1&userId[exists]=true'];
  const followers = filters.map((filter) => new StreamFollower(() => query.url, filter, running.key));
  for (const follower of followers) await eventually(() => follower.lastEventId).toBeDefined();
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 3 });
  const paths = ['/events?limit=20', '/events?event=load&limit=5', '/users/u0', '/users?limit=5', '/organizations/g'];
  await using readers = startReaders({ pipeline: running, urls: () => [query.url], paths });
  const progress = () => untilBothGoOn(load, readers, { accepted: 50, answered: 20 });
  for (const [name, { engine }] of Object.entries(shards.servers)) {
    await progress();
    await engine.kill9();
    await progress();
    await engine.restart();
    await eventually(() => readMetric(query, 'sluice_query_server_readable', { server: name })).toBe(1);
  }
  await progress();
  expect(await readers.stop(), query.log().slice(-6_000)).toEqual([]);
  const tally = await load.stop();
  await running.drained();

  // Each range has an order of its own, and the stream is sent the events of both, at whichever replicas they are read.
  for (const [index, follower] of followers.entries()) {
    await expectAllReceived(running, follower, filters[index] ?? '');
    expect(follower.moves).toEqual([]);
    expect(new Set(follower.received).size).toBe(follower.received.length);
  }

  const { database } = running;
  // Each of both replicas of a range has the same of it, and the two ranges have everything together, once.
  for (const { engine } of [a1, a2, b1, b2]) await readClickHouse(engine.url, `SYSTEM SYNC REPLICA ${database}.events`);
  for (const [one, other] of [
    [a1, b2],
    [a2, b1],
  ] as const)
    await expectExactlyOnce(
      { ...running, database: await together(one.engine.url, [other.relay.port], database) },
      one.engine.url,
      tally,
    );

  await running.deleteUser('u0');
  await eventually(async () => (await running.get<{ total: number }>('/events?userId=u0&limit=0')).body.total).toBe(0);
  for (const { engine } of [a1, a2, b1, b2]) {
    const ofUser = `SELECT count() FROM ${database}.events WHERE user_id = 'u0'`;
    await eventually(() => readClickHouse(engine.url, ofUser).then(Number)).toBe(0);
  }
});
