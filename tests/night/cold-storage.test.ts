import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { expectBalanced } from '../kit/audit.ts';
import { RESTORE_ACCOUNT, sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { COLD_ENV, COLD_TIME, type ColdStorage, startColdStorage } from '../kit/cold-storage.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';

const OLD = new Date(COLD_TIME).toISOString();
const DAY_MS = 86_400_000;
const RECENTLY = new Date(Date.now() - 20 * DAY_MS).toISOString();
const OF_OLD_MONTH = `/events?limit=200&endDate=${RECENTLY}`;
const OF_NEW_MONTHS = `/events?limit=200&startDate=${RECENTLY}`;

/** In the order of the sorting key; all come before those of events without one. So they are looked up among events on S3. */
const uuidOf = (index: number) => `018f3c5e-7b1a-7cc0-9d5e-${String(index).padStart(12, '0')}`;
const oldEvent = (index: number) => ({ event: 'old', timestamp: OLD, uuid: uuidOf(index) });

const started = new AsyncDisposableStack();
let cold: ColdStorage;
let backups: string;

beforeAll(async () => {
  backups = started.use(await makeTempDir()).path;
  cold = started.use(await startColdStorage({ backupDir: backups }));
});
afterAll(() => started.disposeAsync());

async function start(name: string, env: Readonly<Record<string, string>> = {}): Promise<Pipeline> {
  const { url: clickhouseUrl } = cold.clickhouse;
  return await startPipeline({
    ...{ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl, name },
    env: { ...COLD_ENV, ...env },
  });
}

/** Starts a pipeline of whose 150 events 100 lie on the cold volume. */
async function startCold(name: string, env: Readonly<Record<string, string>> = {}): Promise<Pipeline> {
  const pipeline = await start(name, env);
  await submit(pipeline, oldEvent(0), 1);
  await submit(pipeline, { event: 'old', timestamp: OLD }, 99);
  await submit(pipeline, { event: 'new' }, 50);
  await pipeline.settled(150);
  await isCold(pipeline);
  return pipeline;
}

async function submit(pipeline: Pipeline, event: object, count: number, foreignUserId = 'ann'): Promise<void> {
  const events = Array.from({ length: count }, () => event);
  expect((await pipeline.submit({ foreignUserGroupId: 'g', foreignUserId, events })).status).toBe(202);
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

async function isCold(pipeline: Pipeline, events = 100): Promise<void> {
  await eventually(() => rowsByDisk(pipeline)).toBe(`cold_s3=${events} default=50`);
}

/** The keys of the objects that ClickHouse knows to be of the events of a pipeline. */
async function objectsOf(pipeline: Pipeline): Promise<readonly string[]> {
  const keys = await readIn(
    pipeline,
    `SELECT arrayStringConcat(groupArray(remote_path), ' ') FROM system.remote_data_paths
      WHERE disk_name = 'cold_s3' AND position(local_path, (
        SELECT toString(uuid) FROM system.tables WHERE database = currentDatabase() AND name = 'events'
      )) > 0`,
  );
  return keys.split(' ').filter((key) => key !== '');
}

/** How many late events wait for the cold volume. */
const waiting = (pipeline: Pipeline) =>
  readIn(pipeline, "SELECT count() FROM dead_letters FINAL WHERE reason LIKE 'COLD_VOLUME_AWAY: %'");

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

test('users who were deleted since a backup are erased from S3 after it is restored', async () => {
  await using running = await startCold('coldbackup');
  expect(await sluice(running, ['backup', '--to', `${backups}/monday`])).toMatchObject({ code: 0 });
  await running.deleteUser('ann');
  await eventually(() => totals(running)).toEqual([0, 0]);
  await running.services.writer.stop();
  const restored = await sluice(running, ['restore', '--from', `${backups}/monday`, '--yes'], RESTORE_ACCOUNT);
  expect(restored).toMatchObject({ code: 0 });
  await running.restart('writer');
  await until(
    'the deleted user to be erased',
    async () => (await readIn(running, 'SELECT count() FROM events')) === '0',
  );
});

test('partitions are staged, detached and attached as on a disk', async () => {
  await using running = await startCold('coldstaging');
  await running.services.writer.stop();
  const partition = await readIn(
    running,
    `SELECT any(partition_id) FROM system.parts
      WHERE database = currentDatabase() AND table = 'events' AND active AND disk_name = 'cold_s3'`,
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

test('a month that expires as a whole is removed from S3', async () => {
  await using running = await startCold('coldexpiry');
  const keys = await objectsOf(running);
  const there = async () => {
    const objects = await cold.objects();
    return keys.filter((key) => objects.has(key));
  };
  expect(await there()).toEqual(keys);
  expect(keys.length).toBeGreaterThan(0);
  await running.services.writer.stop();
  await running.startAnother('writer', { EVENTS_RETENTION_DAYS: '40', RETENTION_DELAY_MS: '0' });
  await eventually(() => rowsByDisk(running)).toBe('default=50');
  await until('its objects to be removed', async () => (await there()).length === 0);
  expect(await totals(running)).toEqual([0, 50]);
});

test('a move that S3 breaks off is taken up again, and the page finds what it has left there', async () => {
  await using running = await start('coldbroken');
  cold.awayAfterWrites(20);
  await submit(running, { event: 'old', timestamp: OLD }, 100);
  await submit(running, { event: 'new' }, 50);
  await running.settled(150);
  const { writer } = running.services;
  await until('the move to fail', async () => writer.log().includes('moving old events failed; retrying'));
  expect(await rowsByDisk(running)).toBe('default=150');
  expect(await totals(running)).toEqual([100, 50]);
  // An operator's finding: the upload of this object was broken off.
  const unknown = join(cold.s3.bucketDir, 'sluice', 'abc', 'unknown');
  await mkdir(dirname(unknown), { recursive: true });
  await writeFile(unknown, 'ann');
  cold.s3Becomes('there');
  await isCold(running);
  expect(await totals(running)).toEqual([100, 50]);

  const listed = async () => {
    const rows = await readIn(running, `${await cold.statementOfUnknownObjects()} FORMAT TSV`);
    return rows.split('\n').flatMap((row) => row.split('\t')[0]?.replace(`${basename(cold.s3.bucketDir)}/`, '') ?? []);
  };
  const left = await listed();
  expect(left).toContain('sluice/abc/unknown');
  for (const key of left) await rm(join(cold.s3.bucketDir, key));
  expect(await listed()).toEqual(['']);
  // What is left is all that ClickHouse needs.
  await readIn(running, 'SYSTEM DROP MARK CACHE');
  expect(await readIn(running, "SELECT countIf(user_id = 'ann') FROM events")).toBe('150');
  await cold.clickhouse.kill9();
  await cold.clickhouse.restart();
  await eventually(() => totals(running)).toEqual([100, 50]);
});

test.each(['silent', 'slow'] as const)(
  'an S3 that is %s holds up neither recent events nor late ones',
  async (state) => {
    await using running = await startCold(`cold${state}`, { QUERY_TIMEOUT_MS: '5000' });
    cold.s3Becomes(state);
    try {
      await submit(running, oldEvent(1), 1);
      await submit(running, { event: 'new' }, 10);
      await running.drained();
      if (state === 'silent') expect(await waiting(running)).toBe('1');
      expect(await running.get(OF_NEW_MONTHS)).toMatchObject({ status: 200, body: { total: 60 } });
      const { body } = await running.get<{ code?: string }>(OF_OLD_MONTH);
      // A slow one may be fast enough, or take more time than a query has.
      const codes = state === 'slow' ? [undefined, 'query_too_expensive'] : [];
      expect([...codes, 'store_unavailable']).toContain(body.code);
    } finally {
      cold.s3Becomes('there');
    }
    await eventually(() => totals(running)).toEqual([101, 60]);
  },
);

test('late events that wait are stored once, whoever ends meanwhile, and not those of a user who is deleted', async () => {
  await using running = await startCold('coldlate');
  // Late history is partitioned by year.
  const history = (index: number) => ({
    ...oldEvent(index),
    timestamp: new Date(COLD_TIME - 1_000 * DAY_MS).toISOString(),
  });
  for (const index of [0, 9]) await submit(running, history(index), 1);
  await isCold(running, 102);
  cold.s3Becomes('away');
  await submit(running, history(5), 1);
  for (const index of [0, 1, 2, 2]) await submit(running, oldEvent(index), 1);
  await submit(running, oldEvent(3), 1, 'bob');
  await running.drained();
  expect(await waiting(running)).toBe('6');
  await running.deleteUser('bob');
  await running.killAndRestart('writer');
  await until('a round to fail', async () => running.services.writer.log().includes('wait for the cold volume failed'));
  cold.s3Becomes('there');
  // The producer sends one once more, before it was stored or after that.
  await submit(running, oldEvent(1), 1);
  await until('a round to end', async () => running.services.writer.log().includes('the cold volume answers'));
  await running.killAndRestart('writer');
  await eventually(() => waiting(running)).toBe('0');
  await running.drained();
  expect(await totals(running)).toEqual([105, 50]);
  await isCold(running, 105);
  expect(
    await readIn(
      running,
      "SELECT count(), uniqExact(timestamp, uuid), countIf(user_id = 'bob') FROM events FORMAT TSV",
    ),
  ).toBe('155\t155\t0');
  await expectBalanced(running);
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
