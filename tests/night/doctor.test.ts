import { join } from 'node:path';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { ADMINISTRATOR, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createNewest } from '@sluice/shared/clickhouse/testing/test-database';
import { expectInTime } from '@sluice/shared/testing/until';
import { expect, inject, onTestFinished, test } from 'vitest';
import { diagnose, type Environment, topicsWith } from '../kit/doctor.ts';
import { ownClickHouse, ownKafka } from '../kit/engines.ts';
import { freeze } from '../kit/freeze.ts';
import { kafkaClient } from '../kit/kafka-client.ts';
import { mountSmallDisk } from '../kit/small-disk.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';

// What `sluice doctor` finds in larger clusters, and in engines that do not answer.

const namesOf = (results: readonly { readonly name: string }[]) => results.map(({ name }) => name);

async function environmentOf(brokers: readonly string[], prefix: string, settings: Environment): Promise<Environment> {
  return { ...(await topicsWith(kafkaClient(brokers), prefix, { settings })), KAFKA_BROKERS: brokers.join() };
}

test('three brokers, and a topic of which one replica is enough', async () => {
  await using kafka = await ownKafka({ brokers: 3 });
  const sound = await environmentOf(kafka.brokers, 'sound.', {});
  expect((await diagnose(['ingest-api'], sound)).wrong).toEqual([]);
  const weak = await environmentOf(kafka.brokers, 'weak.', { 'min.insync.replicas': '1' });
  const { wrong } = await diagnose(['ingest-api'], weak);
  expect(namesOf(wrong)).toEqual(['kafka.replicas']);
  expect(wrong[0]?.found).toContain('topic weak.events has 3 replicas of each partition and min.insync.replicas=1');
});

test('a broker that gives an address which cannot be reached', async () => {
  const [port = 0] = await findFreePorts(1);
  const relay = await startTcpProxy({ host: '127.0.0.1', port }, (client, broker) => {
    client.pipe(broker).pipe(client);
  });
  await using kafka = await ownKafka({ ports: [port], advertisedPorts: [relay.port] });
  await relay.stop();
  const { wrong } = await diagnose(['ingest-api'], { KAFKA_BROKERS: kafka.brokers.join() });
  expect(namesOf(wrong)).toEqual(['kafka.reached']);
  expect(wrong[0]?.found).toContain(`gives the address 127.0.0.1:${relay.port}, which cannot be reached`);
});

test('a disk of ClickHouse that is nearly full', async () => {
  await using folder = await makeTempDir();
  await using disk = await mountSmallDisk(join(folder.path, 'disk'), 400);
  const dataDir = join(folder.path, 'disk', 'data');
  await using clickhouse = await ownClickHouse({ dataDir, wrap: disk.enter, logDir: folder.path });
  const database = 'test_full';
  await createNewest({ CLICKHOUSE_URL: clickhouse.url, CLICKHOUSE_DATABASE: database, ...ADMINISTRATOR });
  const env = {
    ...(await environmentOf(inject('kafkaBrokers'), 'full.', {})),
    ...{ CLICKHOUSE_URL: clickhouse.url, CLICKHOUSE_DATABASE: database, ...WRITER_ACCOUNT },
  };
  expect((await diagnose(['writer'], env)).wrong).toEqual([]);
  await disk.fill(30_000_000);
  const { wrong } = await diagnose(['writer'], env);
  expect(namesOf(wrong)).toEqual(['clickhouse.disk']);
});

test('engines that do not answer are named in time', async () => {
  await using kafka = await ownKafka();
  await using clickhouse = await ownClickHouse();
  const sound = await environmentOf(kafka.brokers, 'frozen.', {});
  for (const pid of [kafka.pids[0], clickhouse.pid]) onTestFinished(freeze(pid ?? 0));
  const startedAt = performance.now();
  const { wrong } = await diagnose(['writer'], { ...sound, CLICKHOUSE_URL: clickhouse.url, ...WRITER_ACCOUNT });
  expect(namesOf(wrong)).toEqual(['kafka.reached', 'clickhouse.reached']);
  expectInTime('doctor', performance.now() - startedAt, 90_000);
});
