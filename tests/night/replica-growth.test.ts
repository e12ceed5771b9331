import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { loadConfig } from '@sluice/shared/config';
import { eventually } from '@sluice/shared/testing/eventually';
import { checkPartitionCount, PartitionCountMismatch } from '@sluice/storage/clickhouse/partition-count';
import { configSchema } from '@sluice/writer/config';
import { expect, inject, test } from 'vitest';
import { sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { GrowingPipeline, numberedEvents } from '../kit/growing-pipeline.ts';
import { startReplicas } from '../kit/replicas.ts';

const NAME = 'replicagrowth';
const EVENTS = 40;

test('partitions grow where all replicas answer, and repeats of events are none afterwards', async () => {
  await using replicas = await startReplicas(['r1', 'r2']);
  const { r1, r2 } = replicas.servers;
  const kafkaBrokers = inject('kafkaBrokers');
  await using growing = await GrowingPipeline.start({
    ...{ kafkaBrokers, clickhouseUrl: r1.url, name: NAME },
    servers: { r1: { url: r1.url }, r2: { url: r2.url } },
    env: { CLICKHOUSE_REPLICATION: 'replicated' },
  });
  const { running } = growing;
  const recorded = async (url: string) =>
    await readClickHouse(
      url,
      `SELECT arrayStringConcat(arraySort(groupUniqArray(partitions)), ' ') FROM ${running.database}.topic_partitions`,
    );
  await running.submit(numberedEvents(0, EVENTS));
  await running.settled(EVENTS);
  await running.drained();
  const grow = () => growing.run('4', '--yes');
  expect((await grow()).output).toContain('Writers are running');
  for (const writer of Object.values(running.writers)) await writer.stop();
  await running.services['ingest-api'].stop();
  await growing.lastSignOfLife(61_000);
  await r2.kill9();
  expect((await grow()).code).toBe(1);
  expect([await growing.inKafka(), await recorded(r1.url)]).toEqual([[2, 2], '2']);
  await r2.restart();

  // One that has not fetched yet what another one has recorded does not let a writer record another number.
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: kafkaBrokers.join(','),
    KAFKA_TOPIC_PREFIX: `${NAME}.`,
    CLICKHOUSE_URL: r1.url,
    CLICKHOUSE_DATABASE: running.database,
    ...WRITER_ACCOUNT,
  });
  await using clients = new AsyncDisposableStack();
  const [one, two] = [r1, r2].map(({ url }) =>
    clients.adopt(
      createClickHouse(
        { ...config, CLICKHOUSE_URL: url },
        { application: 'test', requestTimeoutMs: 60_000, connectionsMax: 2 },
      ),
      (client) => client.close(),
    ),
  );
  if (!one || !two) throw new Error('there are two replicas');
  const other = (KAFKA_PARTITIONS: number) => ({ ...config, KAFKA_TOPIC_PREFIX: 'other.', KAFKA_PARTITIONS });
  await readClickHouse(r2.url, `SYSTEM STOP FETCHES ${running.database}.topic_partitions`);
  await checkPartitionCount(one, other(6), []);
  await expect(checkPartitionCount(two, other(8), [one])).rejects.toThrow(PartitionCountMismatch);
  await readClickHouse(r2.url, `SYSTEM START FETCHES ${running.database}.topic_partitions`);
  await checkPartitionCount(two, other(6), [one]);
  const ofOther = `SELECT DISTINCT partitions FROM ${running.database}.topic_partitions WHERE topic = 'other.events'`;
  for (const { url } of [r1, r2]) await eventually(() => readClickHouse(url, ofOther)).toBe('6');
  const forgotten = `ALTER TABLE ${running.database}.topic_partitions DELETE WHERE topic LIKE 'other.%'`;
  await readClickHouse(r1.url, `${forgotten} SETTINGS mutations_sync = 2`);

  const grown = await grow();
  expect(grown).toMatchObject({ code: 0, output: expect.stringContaining('r2 has recorded 4 partitions') });
  expect(await growing.inKafka()).toEqual([4, 4]);
  for (const { url } of [r1, r2]) expect(await recorded(url)).toBe('4');
  const former = await growing.startWith('writer', 2);
  expect(await former.endsItself()).toBe(1);
  await growing.startWith('writer', 4).then((writer) => writer.ready());
  const ingest = await growing.startWith('ingest-api', 4);
  await ingest.ready();
  // The same events again, and as many others.
  const response = await fetch(`${ingest.url}/v1/public/userGroups`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${running.key}` },
    body: JSON.stringify(numberedEvents(0, 2 * EVENTS)),
  });
  expect(response.status).toBe(202);
  await running.settled(2 * EVENTS);
  const { output } = await sluice(running, ['servers', 'status']);
  expect(output).not.toContain('The number of partitions');
});
