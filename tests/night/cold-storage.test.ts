import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { RESTORE_ACCOUNT, sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { COLD_ENV, COLD_TIME, type ColdStorage, startColdStorage } from '../kit/cold-storage.ts';
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
async function startCold(name: string): Promise<Pipeline> {
  const pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: cold.clickhouse.url,
    name,
    env: COLD_ENV,
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
