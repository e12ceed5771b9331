import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { compareServers, expectComparedSame } from '../kit/compared-servers.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { expectEqualServers } from '../kit/equal-servers.ts';
import { freeze } from '../kit/freeze.ts';
import { startLoad } from '../kit/load.ts';
import { readMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { startReaders, untilBothGoOn } from '../kit/readers.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

test('one of two ClickHouse servers at a time is killed, frozen, or loses its writer: reads go on, and both end up equal', async () => {
  await using one = await ownClickHouse();
  await using other = await ownClickHouse();
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: one.url,
    name: 'mirrors',
    servers: { a1: { url: one.url }, a2: { url: other.url } },
    // On a busy machine a server may take more than a minute to catch up, while the other one is away.
    envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } },
  });
  const { 'ingest-api': ingest, 'query-api': query } = running.services;
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u0', events: [{ event: 'first' }] });
  await running.settled(1);

  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 6 });
  const paths = ['/events?limit=20', '/events?event=load&limit=5', '/users/u0', '/users?limit=5', '/organizations/g'];
  await using readers = startReaders({ pipeline: running, urls: () => [query.url], paths });
  const progress = () => untilBothGoOn(load, readers, { accepted: 50, answered: 10 });

  for (const [name, engine] of Object.entries({ a1: one, a2: other })) {
    const writer = running.writers[name];
    if (!writer) throw new Error(`${name} has no writer`);
    const failures = () => readMetric(writer, 'sluice_writer_batch_failures_total');
    await progress();
    await engine.kill9();
    await progress();
    await engine.restart();
    await progress();
    if (engine.pid === undefined) throw new Error('the engine does not run');
    const thaw = freeze(engine.pid);
    const before = await failures();
    await progress();
    // Queries and the writer of the frozen one have given it up.
    await eventually(() => readMetric(query, 'sluice_query_server_readable', { server: name })).toBe(0);
    await eventually(failures).toBeGreaterThan(before);
    thaw();
  }
  for (const name of ['a1', 'a2']) {
    const writer = running.writers[name];
    if (!writer) throw new Error(`${name} has no writer`);
    await writer.kill9();
    await progress();
    running.writers[name] = await running.replace(writer);
  }
  await progress();
  const underLoad = await compareServers(running, 'a1', 'a2');
  await progress();

  expect(await readers.stop(), query.log().slice(-6_000)).toEqual([]);
  const tally = await load.stop();
  for (const { url } of [one, other]) {
    // Events that were sent again for another user may differ between servers: what is served is that of the same one.
    await running.writeServers({
      a1: { url: one.url, serves: url === one.url },
      a2: { url: other.url, serves: url === other.url },
    });
    await running.services['query-api'].stop();
    await running.restart('query-api');
    await expectExactlyOnce(running, url, tally);
  }
  const { database } = running;
  await expectEqualServers(
    [one, other].map(({ url }) => ({ url, database })),
    tally,
  );
  for (const compared of [underLoad, await compareServers(running, 'a1', 'a2')]) expectComparedSame(compared, tally);
});
