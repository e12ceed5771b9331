import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { RESTORE_ACCOUNT, sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { COLD_ENV, COLD_TIME, type ColdStorage, startColdStorage } from '../kit/cold-storage.ts';
import { freeze } from '../kit/freeze.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';

const OLD = new Date(COLD_TIME).toISOString();
const RECENTLY = new Date(Date.now() - 20 * 86_400_000).toISOString();
const OF_OLD_MONTH = `/events?limit=200&endDate=${RECENTLY}`;
const OF_NEW_MONTHS = `/events?limit=200&startDate=${RECENTLY}`;

const started = new AsyncDisposableStack();
let cold: ColdStorage;
let backups: string;

beforeAll(async () => {
  backups = started.use(await makeTempDir()).path;
  cold = started.use(await startColdStorage({ backupDir: backups }));
});
afterAll(() => started.disposeAsync());

/** Starts a pipeline of whose 150 events 100 lie on the cold volume. */
async function startCold(name: string, env: Readonly<Record<string, string>> = {}): Promise<Pipeline> {
  const pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: cold.clickhouse.url,
    name,
    env: { ...COLD_ENV, ...env },
  });
  await submit(pipeline, { event: 'old', timestamp: OLD }, 100);
  await submit(pipeline, { event: 'new' }, 50);
  await pipeline.settled(150);
  await isCold(pipeline);
  return pipeline;
}

async function submit(pipeline: Pipeline, event: object, count: number): Promise<void> {
  const events = Array.from({ length: count }, () => event);
  expect((await pipeline.submit({ foreignUserGroupId: 'g', foreignUserId: 'ann', events })).status).toBe(202);
}

function readIn({ database }: Pipeline, sql: string): Promise<string> {
  return readClickHouse(cold.clickhouse.url, sql, { database });
}

/** How many events lie on which disk. */
const rowsByDisk = (pipeline: Pipeline) =>
  readIn(
    pipeline,
    `SELECT arrayStringConcat(arraySort(groupArray(disk_name || '=' || toString(disk_rows))), ' ') FROM (
      SELECT disk_name, sum(rows) AS disk_rows FROM system.parts
      WHERE database = currentDatabase() AND table = 'events' AND active AND rows > 0
      GROUP BY disk_name
    )`,
  );

async function isCold(pipeline: Pipeline): Promise<void> {
  await eventually(() => rowsByDisk(pipeline)).toBe('cold_s3=100 default=50');
}

const totals = async (pipeline: Pipeline) =>
  await Promise.all(
    [OF_OLD_MONTH, OF_NEW_MONTHS].map(async (path) => (await pipeline.get<{ total: number }>(path)).body.total),
  );

test('users who were deleted since a backup are erased from S3 after it is restored', async () => {
  await using running = await startCold('coldbackup');
  expect(await sluice(running, ['backup', '--to', `${backups}/monday`])).toMatchObject({ code: 0 });
  await running.deleteUser('ann');
  await eventually(() => totals(running)).toEqual([0, 0]);
  await running.services.writer.stop();
  const restored = await sluice(running, ['restore', '--from', `${backups}/monday`, '--yes'], RESTORE_ACCOUNT);
  expect(restored).toMatchObject({ code: 0 });
  // Deleted users stay deleted.
  await running.restart('writer');
  await until(
    'the deleted user to be erased',
    async () => (await readIn(running, 'SELECT count() FROM events')) === '0',
  );
});

test('a backup holds what is on S3, and a restored month moves there again', async () => {
  await using running = await startCold('coldrestore');
  expect(await sluice(running, ['backup', '--to', `${backups}/tuesday`])).toMatchObject({ code: 0 });
  await running.services.writer.stop();
  await readIn(running, 'TRUNCATE TABLE events');
  const restored = await sluice(running, ['restore', '--from', `${backups}/tuesday`, '--yes'], RESTORE_ACCOUNT);
  expect(restored).toMatchObject({ code: 0 });
  await eventually(() => totals(running)).toEqual([100, 50]);
  await running.restart('writer');
  await isCold(running);
  expect(await totals(running)).toEqual([100, 50]);
});

test('a month that expires as a whole is removed from S3', async () => {
  await using running = await startCold('coldexpiry');
  const before = (await cold.objects()).length;
  await running.services.writer.stop();
  await running.startAnother('writer', { EVENTS_RETENTION_DAYS: '40', RETENTION_DELAY_MS: '0' });
  await eventually(() => rowsByDisk(running)).toBe('default=50');
  await until('its objects to be removed', async () => (await cold.objects()).length < before);
  expect(await totals(running)).toEqual([0, 50]);
});

test('partitions are staged, detached and attached as on a disk', async () => {
  await using running = await startCold('coldstaging');
  const partition = await readIn(
    running,
    "SELECT any(partition_id) FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active AND disk_name = 'cold_s3'",
  );
  await readIn(running, 'CREATE TABLE staging AS events');
  await readIn(running, `ALTER TABLE staging REPLACE PARTITION ID '${partition}' FROM events`);
  await readIn(running, `ALTER TABLE events DROP PARTITION ID '${partition}'`);
  expect(await totals(running)).toEqual([0, 50]);
  await readIn(running, `ALTER TABLE staging MOVE PARTITION ID '${partition}' TO TABLE events`);
  expect(await totals(running)).toEqual([100, 50]);
  await readIn(running, `ALTER TABLE events DETACH PARTITION ID '${partition}'`);
  expect(await totals(running)).toEqual([0, 50]);
  await readIn(running, `ALTER TABLE events ATTACH PARTITION ID '${partition}'`);
  await isCold(running);
  expect(await totals(running)).toEqual([100, 50]);
});

test('late events of a month on S3 wait while S3 is away, and are stored once; others are stored meanwhile', async () => {
  await using running = await startCold('coldlate');
  const uuid = '018f3c5e-7b1a-7cc0-9d5e-0242ac120002';
  await submit(running, { event: 'late', timestamp: OLD, uuid }, 1);
  await running.settled(151);
  cold.cutOff(true);
  await submit(running, { event: 'late', timestamp: OLD, uuid }, 1);
  await until('the writer to say why it waits', async () => running.services.writer.log().includes('S3 disk'));
  expect((await running.get(OF_NEW_MONTHS)).status).toBe(200);
  expect((await running.get(OF_OLD_MONTH)).status).toBe(503);
  cold.cutOff(false);
  await submit(running, { event: 'new' }, 1);
  await running.drained();
  expect(await totals(running)).toEqual([101, 51]);
});

test('an S3 that does not respond makes nobody wait for ever', async () => {
  await using running = await startCold('coldfrozen');
  const thaw = freeze(cold.s3.pid);
  try {
    expect((await running.get(OF_NEW_MONTHS)).status).toBe(200);
    expect((await running.get(OF_OLD_MONTH)).status).toBe(503);
    await submit(running, { event: 'new' }, 10);
    await eventually(async () => (await running.get<{ total: number }>(OF_NEW_MONTHS)).body.total).toBe(60);
  } finally {
    thaw();
  }
  await eventually(() => totals(running)).toEqual([100, 60]);
});

test('a policy that is missing is named by the writer, and nothing else stops', async () => {
  await using running = await startPipeline({
    ...{ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: inject('clickhouseUrl'), name: 'coldless' },
    env: COLD_ENV,
  });
  await submit(running, { event: 'old', timestamp: OLD }, 10);
  await running.settled(10);
  await until('the writer to name it', async () =>
    running.services.writer.log().includes('ClickHouse has no storage policy'),
  );
});
