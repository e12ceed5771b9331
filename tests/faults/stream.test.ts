import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { ownClickHouse } from '../kit/engines.ts';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { allOf, identityOf, StreamFollower } from '../kit/stream-follower.ts';

test('clients of the stream get each event once, in their workspace, while query-api and ClickHouse are killed', async () => {
  await using clickhouse = await ownClickHouse();
  const kafkaBrokers = inject('kafkaBrokers');
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: clickhouse.url, name: 'stream' });
  const otherKey = await running.addKey('other');
  const filters = ['', '?properties.key[contains]=1&userId[exists]=true', '?event[ne]=nothing'];
  const url = () => running.services['query-api'].url;
  const followers = [running.key, otherKey].flatMap((key) =>
    filters.map((filter) => ({ key, filter, follower: new StreamFollower(url, filter, key) })),
  );
  await until('all clients to listen', async () =>
    followers.every(({ follower }) => follower.lastEventId !== undefined),
  );

  const urls = () => [running.services['ingest-api'].url];
  await using load = startLoad({ pipeline: running, urls, concurrency: 4 });
  await using otherLoad = startLoad({ pipeline: { key: otherKey }, urls, concurrency: 2, seed: 2 });
  await until('more events', async () => load.acceptedSoFar() > 50);
  await running.services['query-api'].kill9();
  await running.restart('query-api');
  await clickhouse.kill9();
  const before = load.acceptedSoFar();
  await until('events that wait in Kafka', async () => load.acceptedSoFar() > before + 50);
  await clickhouse.restart();
  await load.stop();
  await otherLoad.stop();
  await running.drained();

  const everything = new Map<string, Set<string>>();
  for (const { key, filter, follower } of followers) {
    const stored = new Set((await allOf(running, filter, key)).map(identityOf));
    expect(stored.size).toBeGreaterThan(0);
    await until('the last events to be sent', async () => stored.isSubsetOf(new Set(follower.received)));
    await follower.stop();
    // 503 while ClickHouse is away.
    expect(follower.refusals.filter((status) => status !== 503)).toEqual([]);
    expect(follower.connections).toBeGreaterThan(1);
    // Events of users who were deleted since may have been sent before; nothing was sent twice.
    expect(new Set(follower.received).size).toBe(follower.received.length);
    if (filter === '') everything.set(key, new Set(follower.received));
    expect(new Set(follower.received).isSubsetOf(everything.get(key) ?? new Set())).toBe(true);
  }
  const [ofOne = new Set(), ofOther = new Set()] = everything.values();
  expect(ofOne.isDisjointFrom(ofOther)).toBe(true);
});
