import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { messageHeaders } from '@sluice/shared/rows';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { kafkaClient } from '../kit/kafka-client.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { startReplicas } from '../kit/replicas.ts';
import { uuidInPartition } from '../kit/uuid-in-partition.ts';

const PARTITIONS = 6;
const HOUR_MS = 3_600_000;

/** Sends an event to each partition, as if ingest-api had done it so many hours ago. */
async function produce(topic: string, hoursAgo: number): Promise<void> {
  const producer = kafkaClient(inject('kafkaBrokers')).producer({ allowAutoTopicCreation: false });
  await producer.connect();
  const timestamp = Date.now() - hoursAgo * HOUR_MS;
  const messages = Array.from({ length: PARTITIONS }, (_, partition) => {
    const uuid = uuidInPartition(PARTITIONS, (one) => one === partition);
    const row = { workspace_id: 'w', timestamp, uuid, event: 'e', received_at: timestamp * 1_000 };
    const headers = { ...messageHeaders('events'), partitions: String(PARTITIONS) };
    return { partition, headers, value: `${JSON.stringify(row)}\n` };
  });
  await producer.send({ topic, acks: -1, messages });
  await producer.disconnect();
}

interface Audit {
  readonly server: string;
  readonly balanced: boolean;
}

test('each replica is audited over the same hours; what one of them has wrong is recorded, and looked at again', async () => {
  await using replicas = await startReplicas(['r1', 'r2']);
  const { r1, r2 } = replicas.servers;
  const kafkaBrokers = inject('kafkaBrokers');
  await using running = await startPipeline({
    ...{ kafkaBrokers, clickhouseUrl: r1.url, name: 'replicaaudit' },
    servers: { r1: { url: r1.url }, r2: { url: r2.url } },
    env: { CLICKHOUSE_REPLICATION: 'replicated' },
  });
  await using work = await makeTempDir();
  const sql = (url: string, statement: string) => readClickHouse(url, statement, { database: running.database });
  await running.drained();
  for (const hoursAgo of [5, 3]) await produce('replicaaudit.events', hoursAgo);
  await running.drained();
  const stored = (url: string) => sql(url, 'SELECT count() FROM events');
  for (const { url } of [r1, r2]) await eventually(() => stored(url)).toBe(String(2 * PARTITIONS));

  /** Audits all, and returns what it says of each. */
  const audit = async (...args: string[]) => {
    const { code, output } = await sluice(running, ['audit', '--json', '--rate', '0', '--work', work.path, ...args]);
    expect([0, 1], output).toContain(code);
    const { audits, balanced } = JSON.parse(output) as { audits: readonly Audit[]; balanced: boolean };
    expect(balanced).toBe(code === 0);
    return audits.map((one) => `${one.server} ${one.balanced}`);
  };
  /** Up to when the audits say that everything is balanced, in seconds, and how many differences the books of the last one have. */
  const recorded = async (url: string) => {
    for (const one of [r1, r2])
      for (const table of ['audits', 'audited_hours']) await sql(one.url, `SYSTEM SYNC REPLICA ${table}`);
    const through = 'SELECT argMax(toUnixTimestamp(balanced_through), finished_at) FROM audits FINAL';
    const wrong = 'SELECT sum(missing + invented + duplicates) FROM audited_hours FINAL';
    return [Number(await sql(url, through)), Number(await sql(url, wrong))];
  };
  // What one alone was audited for is looked at again, with the other one.
  expect(await audit('--since', '6h', '--server', 'r1')).toEqual(['undefined true']);
  expect(await audit()).toEqual(['r1 true', 'r2 true']);
  const [balanced = 0, none] = await recorded(r2.url);
  expect(none).toBe(0);
  // The hours after that are not over.
  expect(await audit()).toEqual([]);

  for (const [one, other, place] of [
    [r1, r2, 0],
    [r2, r1, 1],
  ] as const) {
    await sql(other.url, 'SYSTEM STOP FETCHES events');
    // It would remove one of two rows of a key.
    for (const { url } of [r1, r2]) await sql(url, 'SYSTEM STOP MERGES events');
    const twice = `INSERT INTO events SELECT * FROM events ORDER BY uuid LIMIT ${place}, 1`;
    await sql(one.url, twice);
    const found = await audit('--since', '6h');
    expect(found).toEqual([`r1 ${one !== r1}`, `r2 ${one !== r2}`]);
    const [through = 0, wrong] = await recorded(r1.url);
    expect(through).toBeLessThan(balanced);
    expect(wrong).toBe(1);
    // It begins before what was wrong.
    expect(await audit()).toEqual(found);
    await sql(other.url, 'SYSTEM START FETCHES events');
    for (const { url } of [r1, r2]) await sql(url, 'SYSTEM START MERGES events');
    await sql(one.url, 'OPTIMIZE TABLE events FINAL');
    for (const { url } of [r1, r2]) await eventually(() => stored(url)).toBe(String(2 * PARTITIONS));
  }
  expect(await audit()).toEqual(['r1 true', 'r2 true']);
  expect(await recorded(r1.url)).toEqual([balanced, 0]);
});
