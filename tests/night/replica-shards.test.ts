import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { expectClickHouse, expectFileIsSound } from '../kit/doctor.ts';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { entriesOf, killEachOnce } from '../kit/ranged-server.ts';
import { startReaders, untilBothGoOn } from '../kit/readers.ts';
import { startShards } from '../kit/replicas.ts';
import { expectAllReceived, StreamFollower, untilAllListen } from '../kit/stream-follower.ts';
import { together } from '../kit/together.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

/** The ranges of the six partitions of each topic; servers of one letter are replicas of each other. */
const RANGES = { a1: '0-2', a2: '0-2', b1: '3-5', b2: '3-5' } as const;

test('two shards of two replicas, each server killed once: no read fails, and together they have everything once', async () => {
  await using shards = await startShards({ a1: '1', a2: '1', b1: '2', b2: '2' });
  const { a1, a2, b1, b2 } = shards.servers;
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: a1.engine.url,
    name: 'replicashards',
    servers: entriesOf(shards.servers, RANGES),
    env: { CLICKHOUSE_REPLICATION: 'replicated' },
    // On a busy machine a server may take more than a minute to catch up, while another one is away.
    envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } },
  });
  const { 'ingest-api': ingest, 'query-api': query } = running.services;
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u0', events: [{ event: 'first' }] });
  await running.settled(1);

  const ofShards = 'shard 1 has the partitions 0-2, shard 2 has the partitions 3-5';
  await expectClickHouse(running.environment, 'clickhouse.shards', ofShards);
  await expectFileIsSound(running.environment);

  // The first event was there before.
  const filters = ['?event=load', '?properties.key[contains]=1&userId[exists]=true'];
  const followers = filters.map((filter) => new StreamFollower(() => query.url, filter, running.key));
  await untilAllListen(followers);
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 3 });
  const paths = ['/events?limit=20', '/events?event=load&limit=5', '/users/u0', '/users?limit=5', '/organizations/g'];
  await using readers = startReaders({ pipeline: running, urls: () => [query.url], paths });
  await killEachOnce(shards.servers, query, () => untilBothGoOn(load, readers, { accepted: 50, answered: 20 }));
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
