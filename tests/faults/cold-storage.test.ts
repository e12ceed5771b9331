import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { COLD_ENV, COLD_SECRET, COLD_TIME, startColdStorage } from '../kit/cold-storage.ts';
import { diagnose } from '../kit/doctor.ts';
import { readMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';

const DAY_MS = 86_400_000;

test('an old month moves to S3: recent events do without it, also while it is away, when late ones wait; users are erased there, and the month comes back', async () => {
  await using cold = await startColdStorage();
  const { clickhouse } = cold;
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: clickhouse.url,
    name: 'cold',
    env: COLD_ENV,
  });
  const read = (sql: string) => readClickHouse(clickhouse.url, sql, { database: running.database });
  const partsOn = async () =>
    await read("SELECT arraySort(groupUniqArray(disk_name)) FROM system.parts WHERE active AND table = 'events'");
  const old = new Date(COLD_TIME).toISOString();
  const submit = async (foreignUserId: string, event: object, count: number) => {
    const events = Array.from({ length: count }, () => event);
    expect((await running.submit({ foreignUserGroupId: 'g', foreignUserId, events })).status).toBe(202);
  };
  // Earlier than all others: what comes after it needs S3 to be looked up.
  const stored = { event: 'old', timestamp: old, uuid: '018f3c5e-7b1a-7cc0-9d5e-0242ac120000' };
  await submit('user-of-the-old-month', { event: 'old', timestamp: old }, 50);
  await submit('another', { event: 'old', timestamp: old }, 49);
  await submit('another', stored, 1);
  await submit('new', { event: 'new' }, 100);
  await running.settled(200);
  await eventually(partsOn).toBe("['cold_s3','default']");
  const holds = async (text: string) => [...(await cold.objects()).values()].some((object) => object.includes(text));
  expect(await holds('user-of-the-old-month')).toBe(true);

  const recently = new Date(Date.now() - 20 * DAY_MS).toISOString();
  const recent = [
    '/events?limit=20&total=none',
    `/events?limit=20&startDate=${recently}`,
    `/events?userId=new&startDate=${recently}`,
    `/events/series?interval=day&groupBy=event&startDate=${recently}`,
    `/events/values?property=event&startDate=${recently}`,
  ];
  const statuses = async (paths: readonly string[]) =>
    await Promise.all(paths.map(async (path) => (await running.get(path)).status));
  const before = cold.requests();
  expect(await statuses(recent)).toEqual(recent.map(() => 200));
  expect(cold.requests()).toBe(before);
  const ofOldMonth = `/events?limit=200&endDate=${recently}`;
  expect(await running.get(ofOldMonth)).toMatchObject({ status: 200, body: { total: 100 } });

  cold.s3Becomes('away');
  expect(await statuses(recent)).toEqual(recent.map(() => 200));
  // So many rows that cannot be stored would raise an alarm.
  const late = Array.from({ length: 150 }, (_, index) => ({
    ...stored,
    uuid: `${stored.uuid.slice(0, -3)}${100 + index}`,
  }));
  expect(
    (await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'late', events: [stored, ...late] })).status,
  ).toBe(202);
  await submit('new', { event: 'stored meanwhile' }, 10);
  await running.drained();
  const waiting = "SELECT count() FROM dead_letters FINAL WHERE reason LIKE 'COLD_VOLUME_AWAY: %'";
  expect(await read(waiting)).toBe('151');
  const { writer } = running.services;
  expect(writer.log()).toContain('the cold volume does not answer');
  expect((await fetch(`${writer.url}/readyz`)).status).toBe(200);
  expect(await readMetric(writer, 'sluice_writer_dead_letters_total')).toBeGreaterThanOrEqual(151);
  expect(await running.get(`/events?event=stored meanwhile&startDate=${recently}`)).toMatchObject({
    status: 200,
    body: { total: 10 },
  });
  expect(await running.get(ofOldMonth)).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
  const { wrong, text } = await diagnose(['writer'], running.environment);
  expect(wrong).toMatchObject([{ name: 'clickhouse.cold', found: expect.stringContaining('cold_s3 does not answer') }]);
  cold.s3Becomes('there');

  await running.deleteUser('user-of-the-old-month');
  await until('the user to be erased from S3', async () => !(await holds('user-of-the-old-month')));
  await eventually(async () => (await running.get<{ total: number }>(ofOldMonth)).body.total).toBe(200);
  await eventually(() => read(waiting)).toBe('0');

  await running.services.writer.stop();
  await running.startAnother('writer', { EVENTS_COLD_AFTER_DAYS: 'never' });
  await eventually(partsOn).toBe("['default']");
  await until('the objects to be removed', async () => (await cold.objects()).size === 0);
  expect(await running.get(ofOldMonth)).toMatchObject({ status: 200, body: { total: 200 } });

  const logs = await Promise.all((await readdir(cold.logDir)).map((file) => readFile(join(cold.logDir, file), 'utf8')));
  const asked = await Promise.all(
    ['disks', 'storage_policies', 'tables', 'query_log'].map((table) =>
      read(`SELECT * FROM system.${table} FORMAT JSONEachRow`).catch(String),
    ),
  );
  const services = Object.values(running.services).map((service) => service.log());
  for (const output of [...logs, ...asked, ...services, text]) expect(output).not.toContain(COLD_SECRET);
});
