import { cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { RESTORE_ACCOUNT, startBackedUp } from '../kit/backups.ts';
import { ChartJobs } from '../kit/chart-jobs.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { GrowingPipeline, numberedEvents } from '../kit/growing-pipeline.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { startS3Server } from '../kit/s3-server.ts';

// The command lines of the chart's Jobs, as helm renders them, on real engines: docs/operate/kubernetes.md.

const S3 = { keyId: 'sluice-backups', secret: 'a secret of S3' };
const s3 = { accessKeyId: S3.keyId, secretKey: { name: 's3' } };

test('the Jobs migrate, back up and restore, from S3, with the account of a restore', async () => {
  await using backedUp = await startBackedUp('chart');
  const { running } = backedUp;
  const jobs = await ChartJobs.of(running, { s3: S3.secret });
  expect(await jobs.run('migrations', { jobs: { migrations: { beforeUpgrade: true } } })).toMatchObject({
    code: 0,
    output: expect.stringContaining('no migration is missing'),
  });

  const to = backedUp.place('daily it is');
  const backup = { schedule: '0 3 * * *', to: `${to}/` };
  expect(await jobs.run('backup', { jobs: { backup } })).toMatchObject({
    code: 0,
    output: expect.stringContaining('The backup is complete'),
  });
  const [made = ''] = await readdir(to);
  expect(made).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}Z$/);
  // The engine of the tests can read from S3, and not write to it.
  await using server = await startS3Server(S3);
  await cp(join(to, made), join(server.bucketDir, 'sluice', made), { recursive: true });

  await backedUp.submit(40, 'ben');
  const from = `${server.bucketUrl}/sluice/${made}`;
  const user = RESTORE_ACCOUNT.CLICKHOUSE_MIGRATE_USER;
  const restore = (more: object = {}) => jobs.run('restore', { jobs: { s3, restore: { from, user, ...more } } });
  expect(await restore({ confirmed: true })).toMatchObject({
    code: 1,
    output: expect.stringContaining('Stop the writers first'),
  });
  await running.services.writer.stop();
  expect(await jobs.run('restore', { jobs: { s3, restore: { from, confirmed: true } } })).toMatchObject({
    code: 1,
    output: expect.stringContaining('Nothing was restored'),
  });
  expect(await restore()).toMatchObject({
    code: 1,
    output: expect.stringMatching(/is a backup of .*Kafka has everything since the backup.*nothing was restored/s),
  });
  expect(await backedUp.read('SELECT count() FROM events')).toBe('540');
  const restored = await restore({ confirmed: true });
  expect(restored).toMatchObject({ code: 0, output: expect.stringContaining('is restored: ') });
  expect(restored.output).not.toContain(S3.secret);
  expect(await backedUp.read('SELECT count() FROM events')).toBe('500');
  await running.restart('writer');
  await running.settled(540);
});

test('the Job adds partitions once ingest-api and the writers have stopped and everything is stored', async () => {
  await using growing = await GrowingPipeline.start({
    ...{ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: inject('clickhouseUrl') },
    name: 'chartgrowth',
  });
  const { running } = growing;
  const jobs = await ChartJobs.of(running);
  const grow = () => jobs.run('grow-partitions', { ingestApi: { stopped: true }, jobs: { growPartitions: { to: 4 } } });
  expect((await running.submit(numberedEvents(0, 20))).status).toBe(202);
  await running.settled(20);
  expect(await grow()).toMatchObject({ code: 1, output: expect.stringContaining('Writers are running') });
  await Promise.all([running.services.writer.stop(), running.services['ingest-api'].stop()]);
  await growing.lastSignOfLife(61_000);
  expect(await grow()).toMatchObject({
    code: 0,
    output: expect.stringContaining('Set KAFKA_PARTITIONS=4 for all services'),
  });
  expect([await growing.inKafka(), await growing.recorded()]).toEqual([[4, 4], '4']);
});

test('the Job audits, and fails where it cannot', async () => {
  const engines = { kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: inject('clickhouseUrl') };
  await using running = await startPipeline({ ...engines, name: 'chartaudit' });
  expect((await running.submit(numberedEvents(0, 20))).status).toBe(202);
  await running.settled(20);
  const jobs = await ChartJobs.of(running);
  const audit = (since: string) =>
    jobs.run('audit', { jobs: { audit: { schedule: '30 4 * * *', args: ['--since', since] } } });
  // This hour is not over.
  expect(await audit('24h')).toMatchObject({ code: 0, output: expect.stringContaining('0 rows were accepted') });
  expect(await audit('once')).toMatchObject({ code: 2, output: expect.stringContaining('--since must be a time') });
});

test('the Job of the doctor has the accounts and addresses of a writer, and fails where one of them is wrong', async () => {
  // The profile of the shared one is none that services could work with unless they send their own settings.
  await using clickhouse = await ownClickHouse();
  const engines = { kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: clickhouse.url };
  await using running = await startPipeline({ ...engines, name: 'chartdoctor' });
  // Kafka has one broker here, and no service of the chart runs.
  const values = {
    ...{ ingestApi: { stopped: true }, queryApi: { stopped: true }, kafka: { replicationFactor: null } },
    jobs: { doctor: { schedule: '0 * * * *' } },
  };
  const found = await (await ChartJobs.of(running)).run('doctor', values);
  expect(found.output.match(/^WRONG .*$/gm)).toBeNull();
  expect(found).toMatchObject({ code: 0, output: expect.stringMatching(/^ok +clickhouse\S*reached /m) });

  const environment = { ...running.environment, CLICKHOUSE_PASSWORD: 'no such password' };
  const wrong = await (await ChartJobs.of({ environment })).run('doctor', values);
  expect(wrong).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^ok +kafka\.reached .*^WRONG +clickhouse\S*reached /ms),
  });
  expect(wrong.output).not.toContain('no such password');
});
