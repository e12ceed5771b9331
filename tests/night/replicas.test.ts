import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { startLoad } from '../kit/load.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { startReplicas } from '../kit/replicas.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

/** Starts the writers of these servers again, as an operator does after the file was changed, and ends the others. */
async function restartWriters(running: Pipeline, names: readonly string[]): Promise<void> {
  for (const [name, writer] of Object.entries(running.writers)) {
    await writer.stop();
    if (names.includes(name)) running.writers[name] = await running.replace(writer);
  }
}

test('what one of three replicas does not fetch is read at another one, and one that is lost is replaced', async () => {
  await using replicas = await startReplicas(['r1', 'r2', 'r3', 'r4']);
  const { r1, r2, r3, r4 } = replicas.servers;
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: r1.url,
    name: 'lostreplica',
    servers: { r1: { url: r1.url }, r2: { url: r2.url }, r3: { url: r3.url } },
    env: { CLICKHOUSE_REPLICATION: 'replicated' },
    envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } },
  });
  const { database } = running;
  const stored = async (url: string) =>
    Number(await readClickHouse(url, `SELECT uniqExact(uuid) FROM ${database}.events`));
  let users = 0;
  /** Submits events to all partitions. */
  const submit = async () => {
    for (let user = 0; user < 12; user += 1) {
      await running.submit({ foreignUserGroupId: 'g', foreignUserId: `v${user}`, events: [{ event: 'visit' }] });
      users += 1;
    }
  };
  await submit();
  await running.settled(users);

  // query-api reads the first one of the file as long as that is level.
  await readClickHouse(r1.url, `SYSTEM STOP FETCHES ${database}.events`);
  await submit();
  await running.settled(users);
  expect(await stored(r1.url)).toBeLessThan(users);
  await readClickHouse(r1.url, `SYSTEM START FETCHES ${database}.events`);
  await eventually(() => stored(r1.url)).toBe(users);

  await using load = startLoad({
    pipeline: running,
    urls: () => [running.services['ingest-api'].url],
    concurrency: 2,
  });
  const goOn = async () => {
    const before = await stored(r2.url);
    await eventually(() => stored(r2.url)).toBeGreaterThan(before + 20);
  };
  await goOn();
  await r1.kill9();
  // It is refused until Keeper has ended the session of the lost one.
  await until('the replica to be dropped', () =>
    readClickHouse(r2.url, `SYSTEM DROP REPLICA 'r1' FROM DATABASE ${database}`).then(
      () => true,
      () => false,
    ),
  );
  await running.writeServers({ r2: { url: r2.url }, r3: { url: r3.url } });
  await restartWriters(running, ['r2', 'r3']);
  await goOn();
  await running.writeServers({ r2: { url: r2.url }, r3: { url: r3.url }, r4: { url: r4.url } });
  await restartWriters(running, ['r2', 'r3']);
  running.writers['r4'] = await running.startWriter('r4');
  await goOn();

  const tally = await load.stop();
  await running.drained();
  for (const { url } of [r2, r3, r4]) {
    await readClickHouse(url, `SYSTEM SYNC REPLICA ${database}.events`);
    const visits = `SELECT uniqExact(uuid), count() FROM ${database}.events FINAL WHERE event = 'visit'`;
    expect(await readClickHouse(url, visits)).toBe(`${users}\t${users}`);
    await expectExactlyOnce(running, url, tally);
  }
});
