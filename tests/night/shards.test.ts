import { expect, inject, test } from 'vitest';
import { expectEqualServers } from '../kit/equal-servers.ts';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { entriesOf, killEachOnce, startRangedServer } from '../kit/ranged-server.ts';
import { startReaders, untilBothGoOn } from '../kit/readers.ts';
import { together } from '../kit/together.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

/** The ranges of the six partitions of each topic; servers of one letter are mirrors. */
const RANGES = { a1: '0-2', a2: '0-2', b1: '3-5', b2: '3-5' } as const;

test('two ranges of two mirrors, each server killed once: no read fails, and together they have everything once', async () => {
  await using cleanup = new AsyncDisposableStack();
  const started = await Promise.all(
    Object.entries(RANGES).map(async ([name]) => [name, await startRangedServer()] as const),
  );
  for (const [, server] of started) cleanup.use(server);
  const engines = Object.fromEntries(started);
  const servers = entriesOf(engines, RANGES);
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: String(servers['a1']?.url),
    name: 'shards',
    servers,
    // On a busy machine a server may take more than a minute to catch up, while its mirror is away.
    envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } },
  });
  const { 'ingest-api': ingest, 'query-api': query } = running.services;
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u0', events: [{ event: 'first' }] });
  await running.settled(1);

  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 3 });
  const paths = ['/events?limit=20', '/events?event=load&limit=5', '/users/u0', '/users?limit=5', '/organizations/g'];
  await using readers = startReaders({ pipeline: running, urls: () => [query.url], paths });
  await killEachOnce(engines, query, () => untilBothGoOn(load, readers, { accepted: 50, answered: 20 }));
  expect(await readers.stop(), query.log().slice(-6_000)).toEqual([]);
  const tally = await load.stop();
  await running.drained();

  const { database } = running;
  for (const mirrors of [
    ['a1', 'a2'],
    ['b1', 'b2'],
  ]) {
    const databases = mirrors.map((name) => ({ url: String(servers[name]?.url), database }));
    await expectEqualServers(databases, tally);
  }
  // Events that were sent again for another user may differ between mirrors: what is served is that of the same ones.
  await running.writeServers(
    Object.fromEntries(
      Object.entries(servers).map(([name, server]) => [name, { ...server, serves: ['a1', 'b1'].includes(name) }]),
    ),
  );
  await running.services['query-api'].stop();
  await running.restart('query-api');
  const [a1, b1] = [engines['a1'], engines['b1']];
  if (!a1 || !b1) throw new Error('a server is missing');
  await expectExactlyOnce(
    { ...running, database: await together(a1.engine.url, [b1.relay.port], database) },
    a1.engine.url,
    tally,
  );
});
