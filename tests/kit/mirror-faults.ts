import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect } from 'vitest';
import { expectBalanced, onServer } from './audit.ts';
import { compareServers, expectComparedSame } from './compared-servers.ts';
import { ownClickHouse } from './engines.ts';
import { expectEqualServers } from './equal-servers.ts';
import { freeze } from './freeze.ts';
import { startLoad } from './load.ts';
import { readMetric } from './metrics.ts';
import { startPipeline } from './pipeline.ts';
import { startReaders, untilBothGoOn } from './readers.ts';
import { expectAllReceived, StreamFollower, untilAllCanTakeOver } from './stream-follower.ts';
import { expectExactlyOnce } from './verify-delivery.ts';

/** A server of two. */
export type Mirror = 'a1' | 'a2';

export interface MirrorFaults {
  readonly kafkaBrokers: readonly string[];
  /** The name of the pipeline. */
  readonly name: string;
  /** Whose engine is killed, in this order; then whose is frozen, and then whose writer is killed. */
  readonly killed: readonly Mirror[];
  readonly frozen: readonly Mirror[];
  readonly withoutWriter: readonly Mirror[];
  /** Whose rows are compared with what was submitted. All servers are compared with one another. */
  readonly verified: readonly Mirror[];
}

/** The stream begins after the event that everything begins with. */
const OF_THE_LOAD = '?event=load';

/**
 * Expects that reads go on while each of the faults lasts, that a stream misses and repeats nothing, and that both servers have
 * everything once at the end.
 */
export async function expectToSurvive(faults: MirrorFaults): Promise<void> {
  await using one = await ownClickHouse();
  await using other = await ownClickHouse();
  const engines = { a1: one, a2: other };
  await using running = await startPipeline({
    kafkaBrokers: faults.kafkaBrokers,
    clickhouseUrl: one.url,
    name: faults.name,
    servers: { a1: { url: one.url }, a2: { url: other.url } },
    // On a busy machine a server may take more than a minute to catch up, while the other one is away.
    envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } },
  });
  const { 'ingest-api': ingest, 'query-api': query } = running.services;
  const writerOf = (name: Mirror) => {
    const writer = running.writers[name];
    if (!writer) throw new Error(`${name} has no writer`);
    return writer;
  };
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u0', events: [{ event: 'first' }] });
  await running.settled(1);

  // On a busy machine the stream moves to the other server before anything is killed.
  await untilAllCanTakeOver([one.url, other.url], running.database);
  const follower = new StreamFollower(() => query.url, OF_THE_LOAD, running.key);
  await until('the stream to begin', async () => follower.lastEventId !== undefined);
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 3 });
  const paths = ['/events?limit=20', '/events?event=load&limit=5', '/users/u0', '/users?limit=5', '/organizations/g'];
  await using readers = startReaders({ pipeline: running, urls: () => [query.url], paths });
  const progress = () => untilBothGoOn(load, readers, { accepted: 20, answered: 6 });

  await progress();
  for (const name of faults.killed) {
    await engines[name].kill9();
    await progress();
    await engines[name].restart();
    await progress();
  }
  for (const name of faults.frozen) {
    const { pid } = engines[name];
    if (pid === undefined) throw new Error('the engine does not run');
    const failures = () => readMetric(writerOf(name), 'sluice_writer_batch_failures_total');
    const before = await failures();
    const thaw = freeze(pid);
    await progress();
    // Queries and the writer of the frozen one have given it up.
    await eventually(() => readMetric(query, 'sluice_query_server_readable', { server: name })).toBe(0);
    await eventually(failures).toBeGreaterThan(before);
    thaw();
  }
  for (const name of faults.withoutWriter) {
    const writer = writerOf(name);
    await writer.kill9();
    await progress();
    running.writers[name] = await running.replace(writer);
  }
  await progress();
  const underLoad = await compareServers(running, 'a1', 'a2');

  expect(await readers.stop(), query.log().slice(-6_000)).toEqual([]);
  const tally = await load.stop();
  await running.drained();
  await expectAllReceived(running, follower, OF_THE_LOAD);
  expect(follower.moves.length).toBeGreaterThan(0);
  for (const name of faults.verified) {
    // Events that were sent again for another user may differ between servers: what is served is that of the same one.
    await running.writeServers({
      a1: { url: one.url, serves: name === 'a1' },
      a2: { url: other.url, serves: name === 'a2' },
    });
    await running.services['query-api'].stop();
    await running.restart('query-api');
    await expectExactlyOnce(running, engines[name].url, tally);
  }
  const { database } = running;
  for (const [name, { url }] of Object.entries(engines)) await expectBalanced(onServer(running, name, { url }));
  await expectEqualServers(
    [one, other].map(({ url }) => ({ url, database })),
    tally,
  );
  for (const compared of [underLoad, await compareServers(running, 'a1', 'a2')]) expectComparedSame(compared, tally);
}
