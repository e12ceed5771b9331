import { startKafka } from '@sluice/local-stack/kafka';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { PARTITIONS, startServers } from '../../packages/cli/src/testing/test-servers.ts';
import { storeTraffic, TrafficStream } from '../data/store-traffic.ts';
import { createTraffic, LONG_DAYS } from '../data/traffic.ts';
import type { BenchDatabase } from '../processes/database.ts';
import { BenchEngine } from '../processes/engine.ts';
import { type Benchmark, type Figure, figureOf, median, VoidRun } from '../report/benchmark.ts';

type Servers = Awaited<ReturnType<typeof startServers<'a1' | 'a2'>>>;

const MEMORY_BYTES = 12 * 1_024 ** 3;

export const COPY: Benchmark<{ rounds: number; events: number }> = {
  name: 'copy',
  title: 'Filling a ClickHouse server from another one',
  method:
    '`npm run servers -- copy` of product traffic of 36 months, in turn with one `INSERT SELECT` of the same events over ' +
    "ClickHouse's native protocol. Both databases are in one ClickHouse, which stores 5,000 other events a second meanwhile.",
  size: { rounds: 3, events: 3_000_000 },
  measure,
};

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  await using started = new AsyncDisposableStack();
  const folder = started.use(await makeTempDir());
  const kafka = await startKafka({ dataDir: folder.path, onProgress: (line) => console.error(line) });
  started.defer(() => kafka.kill9());
  const engine = started.use(await BenchEngine.start(MEMORY_BYTES, { accounts: TEST_ACCOUNTS }));
  const source = await engine.createDatabase('test_source');
  await storeTraffic(source, createTraffic(events, Date.now() - 60_000, LONG_DAYS), events);
  await engine.settleMerges();
  await source.expectExactly(events);
  const other = await engine.createDatabase('test_other');

  const copies: number[] = [];
  const inserts: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const stream = new TrafficStream(other, createTraffic(events, Date.now(), 1));
    try {
      inserts.push(await insertStraight(engine, source, events));
      copies.push(await copyOnce(engine, kafka.brokers, source, events));
    } finally {
      await stream.stop();
    }
    await engine.settleMerges();
  }
  const ratios = copies.map((ms, round) => ms / (inserts[round] ?? Number.NaN));
  const row = `${events.toLocaleString('en')} events`;
  return [
    figureOf(
      row,
      'copy',
      's',
      copies.map((ms) => ms / 1_000),
    ),
    figureOf(
      row,
      '`INSERT SELECT`',
      's',
      inserts.map((ms) => ms / 1_000),
    ),
    figureOf(row, 'copy ÷ `INSERT SELECT`', '', ratios),
    figureOf(row, 'copy, an event', 'µs', [(1_000 * median(copies)) / events]),
  ];
}

/** Returns the time that one statement takes for all events, in milliseconds. */
async function insertStraight(engine: BenchEngine, source: BenchDatabase, events: number): Promise<number> {
  const target = await engine.createDatabase('test_straight');
  const startedAt = performance.now();
  const query = "INSERT INTO events SELECT * FROM remote({address:String}, 'test_source', 'events')";
  await target.client.command({ query, query_params: { address: engine.native } });
  const ms = performance.now() - startedAt;
  await target.expectExactly(events);
  await source.client.command({ query: 'DROP DATABASE test_straight SYNC' });
  return ms;
}

/** Returns the time of the whole command, in milliseconds. */
async function copyOnce(
  engine: BenchEngine,
  kafkaBrokers: readonly string[],
  source: BenchDatabase,
  events: number,
): Promise<number> {
  const engines = { clickhouseUrl: engine.url, kafkaBrokers };
  await using servers = await startServers(engines, ['a1', 'a2']);
  await fill(servers, source);
  const startedAt = performance.now();
  const { code, stdout, stderr } = await servers.sluice(['servers', 'copy', '--from', 'a1', '--to', 'a2', '--yes']);
  const ms = performance.now() - startedAt;
  if (code !== 0) throw new VoidRun(`the copy failed: ${stdout}${stderr}`);
  const [stored] = await servers.of.a2.read<{ rows: number }>('SELECT uniqExact(uuid) AS rows FROM events');
  if (stored?.rows !== events) throw new VoidRun(`of ${events} events, ${stored?.rows} were copied`);
  return ms;
}

/** Gives `a1` the parts of the source, and the positions and commits of topics without messages. */
async function fill({ kafka, topics, of: { a1 } }: Servers, source: BenchDatabase): Promise<void> {
  for (const table of ['events', 'entities', 'entity_properties', 'user_sightings']) {
    for (const id of await source.partitions(table)) {
      const query = `ALTER TABLE ${table} ATTACH PARTITION ID {id:String} FROM test_source.${table}`;
      await a1.client.command({ query, query_params: { id } });
    }
  }
  const partitions = Array.from({ length: PARTITIONS }, (_, partition) => ({ partition, offset: '0' }));
  for (const topic of Object.values(topics)) {
    await a1.insert('topic_partitions', { topic, partitions: PARTITIONS });
    for (const { partition } of partitions) {
      await a1.insert('writer_positions', { group_id: a1.group, topic, partition, next_offset: 0 });
    }
    await withAdmin(kafka, (admin) => admin.setOffsets({ groupId: a1.group, topic, partitions }));
  }
}
