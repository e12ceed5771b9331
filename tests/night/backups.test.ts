import { backupConfig } from '@sluice/cli/backup/config';
import { PartitionGrowth } from '@sluice/cli/writer/partition-growth';
import { Partitions } from '@sluice/cli/writer/partitions';
import { findFreePorts } from '@sluice/local-stack/ports';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames } from '@sluice/shared/kafka/topics';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BackedUp, backUp, RESTORE_ACCOUNT, sluice, startBackedUp } from '../kit/backups.ts';
import type { Pipeline } from '../kit/pipeline.ts';
import { type Service, startService } from '../kit/service.ts';

const started = new AsyncDisposableStack();
let system: BackedUp;
let running: Pipeline;

const place = (name: string) => system.place(name);
const read = (sql: string, database?: string) => system.read(sql, database);
const submit = (count: number, user: string) => system.submit(count, user);

beforeAll(async () => {
  system = started.use(await startBackedUp('morebackups'));
  running = system.running;
});
afterAll(() => started.disposeAsync());

async function restore(name: string): Promise<void> {
  expect(await sluice(running, ['restore', '--from', place(name), '--yes'], RESTORE_ACCOUNT)).toMatchObject({
    code: 0,
  });
}

test('a user who is erased while a backup is made is hidden after a restore', async () => {
  await submit(10, 'ada');
  await running.services.writer.stop();
  await read("INSERT INTO user_deletions SELECT 'test', 'ada', max(toUnixTimestamp64Micro(received_at)) FROM events");
  await read(
    "INSERT INTO pending_deletions SELECT workspace_id, user_id, version, now64(3) FROM user_deletions WHERE user_id = 'ada'",
  );
  // What an erasure does, between the first part and the second one.
  await backUp(running, place('erased meanwhile'), async (part) => {
    if (part !== 1) return;
    await read("ALTER TABLE events DELETE WHERE user_id = 'ada'");
    await read("ALTER TABLE pending_deletions DELETE WHERE user_id = 'ada'");
  });
  await read('TRUNCATE TABLE user_deletions');
  await restore('erased meanwhile');
  const shown =
    "SELECT count() FROM events WHERE user_id = 'ada' AND user_id NOT IN (SELECT user_id FROM pending_deletions)";
  expect(await read(shown)).toBe('0');
  await running.restart('writer');
});

test('an event that is stored while a backup is made is there once after a restore, and so is its user', async () => {
  const positions =
    'SELECT topic, partition, next_offset, fingerprint FROM writer_positions FINAL ORDER BY ALL FORMAT TSV';
  const before = await read(positions);
  await backUp(running, place('stored meanwhile'), async (part) => {
    if (part === 2) await submit(10, 'joe');
  });
  await running.services.writer.stop();
  await restore('stored meanwhile');
  // As they were when the backup began. Kafka's offsets of the group show that there is something to read.
  expect(await read(positions)).toBe(before);
  const { output } = await sluice(running, ['writer', 'status']);
  const behind = output.split('\n').map((line) => Number(line.split(/ +/)[5] ?? 0));
  expect(behind.some((messages) => messages > 0)).toBe(true);
  await running.restart('writer');
  await running.drained();
  expect(await read("SELECT count() FROM events WHERE user_id = 'joe'")).toBe('10');
  expect((await running.get('/users/joe')).status).toBe(200);
});

test('the retention of the database that is replaced is kept, and nothing is erased by it for a while', async () => {
  const settings = async () =>
    await read(`SELECT workspace_id, days, now64(6) - set_at < 60 FROM retention FINAL WHERE workspace_id IN ('old', 'other')
      ORDER BY ALL FORMAT CSV`);
  await read("INSERT INTO retention SELECT 'old', 30, now64(6) - INTERVAL 5 DAY");
  await backUp(running, place('with retention'), async () => {});
  await read("INSERT INTO retention SELECT 'old', 400, now64(6) - INTERVAL 2 DAY");
  await read("INSERT INTO retention SELECT 'other', 7, now64(6) - INTERVAL 2 DAY");
  await running.services.writer.stop();
  await restore('with retention');
  expect(await settings()).toBe('"old",400,1\n"other",7,1');
  // The same where the database is lost.
  await read(`DROP DATABASE ${running.database} SYNC`, 'default');
  await restore('with retention');
  expect(await settings()).toBe('"old",30,1');
  await running.restart('writer');
});

test('partitions that were added since the backup are named, and stored once the database has grown again', async () => {
  await backUp(running, place('before the growth'), async () => {});
  const { services, environment, database } = running;
  const config = loadConfig(backupConfig, environment);
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const topics = Object.values(topicNames(config));
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 60_000, connectionsMax: 2 });
  started.defer(() => client.close());
  const groupId = config.KAFKA_GROUP_ID;
  const partitions = new Partitions(kafka, client, groupId, topics);
  const growth = new PartitionGrowth(kafka, config, [{ name: undefined, groupId, range: 'all', client, partitions }]);
  const count = async () => await read("SELECT count() FROM events WHERE user_id = 'mia'", database);
  const startWith = async (count: string): Promise<Service> => {
    const [port = 0] = await findFreePorts(1);
    return startService('writer', port, { ...environment, KAFKA_PARTITIONS: count });
  };

  await running.drained();
  await Promise.all([services.writer.stop(), services['ingest-api'].stop()]);
  for (const topic of topics) await growth.createPartitions(topic, 8);
  await growth.record(8);
  const ingest = startService('ingest-api', Number(new URL(services['ingest-api'].url).port), {
    ...running.environmentOf('ingest-api'),
    KAFKA_PARTITIONS: '8',
  });
  await ingest.ready();
  const events = Array.from({ length: 200 }, () => ({ event: 'e' }));
  expect((await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'mia', events })).status).toBe(202);
  await ingest.stop();
  const first = await startWith('8');
  await until('everything to be stored', async () => (await count()) === '200');
  await running.drained();
  await first.stop();

  const { code, output } = await sluice(
    running,
    ['restore', '--from', place('before the growth'), '--yes'],
    RESTORE_ACCOUNT,
  );
  expect([code, output]).toEqual([0, expect.stringMatching(/Besides, [1-4] partitions were added since the backup/)]);
  const six = await startWith('6');
  await until('the other partitions to be stored', async () => {
    const reasons = await growth.obstacles();
    return !reasons.some((reason) => /not stored|halted/.test(reason));
  });
  expect(Number(await count())).toBeLessThan(200);
  await six.stop();
  await growth.record(8);
  const eight = await startWith('8');
  const resume = ['writer', 'resume', '--all', '--from', 'oldest', '--yes'];
  await until('everything to be stored', async () => {
    await sluice(running, resume);
    return (await count()) === '200';
  });
  await eight.stop();
});
