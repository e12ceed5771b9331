import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { COLD_ENV, COLD_TIME, type ColdStorage, startColdStorage } from '../kit/cold-storage.ts';
import { compareServers } from '../kit/compared-servers.ts';
import { COPY } from '../kit/copied-mirrors.ts';
import { startPipeline } from '../kit/pipeline.ts';

const OLD = new Date(COLD_TIME).toISOString();

test('mirrors with a path of one bucket each have the same: late events while S3 is away for one, mended ones, and those of a copy', async () => {
  await using folder = await makeTempDir();
  const dataDir = join(folder.path, 'other');
  await using one = await startColdStorage();
  await using other = await startColdStorage({ dataDir }, { s3: one.s3, path: 'other' });
  const serverOf = ({ clickhouse: { url, tcpPort } }: ColdStorage) => ({ url, native: `127.0.0.1:${tcpPort}` });
  await using running = await startPipeline({
    ...{ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: one.clickhouse.url, name: 'coldmirrors' },
    ...{ servers: { a1: serverOf(one), a2: serverOf(other) }, env: COLD_ENV },
  });
  const submit = async (event: object, count: number) => {
    const events = Array.from({ length: count }, () => event);
    expect((await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'ann', events })).status).toBe(202);
  };
  const rowsOnS3 = async ({ clickhouse }: ColdStorage) =>
    await readClickHouse(
      clickhouse.url,
      "SELECT sum(rows) FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active AND disk_name = 'cold_s3'",
      { database: running.database },
    );
  const bothHaveOnS3 = async (rows: number) => {
    for (const server of [one, other]) await eventually(() => rowsOnS3(server)).toBe(String(rows));
  };
  /** What came within the last half a minute is not compared. */
  const areFound = async (what: string) =>
    await eventually(async () => (await compareServers(running, 'a1', 'a2')).output).toContain(what);

  // What comes after it in the sorting key, and before all others, is looked up on S3.
  await submit({ event: 'old', timestamp: OLD, uuid: '018f3c5e-7b1a-7cc0-9d5e-000000000000' }, 1);
  await submit({ event: 'old', timestamp: OLD }, 99);
  await submit({ event: 'new' }, 50);
  await bothHaveOnS3(100);

  other.s3Becomes('away');
  const late = Array.from({ length: 20 }, (_, index) => ({
    ...{ event: 'late', timestamp: OLD, uuid: `018f3c5e-7b1a-7cc0-9d5e-0000000000${index + 10}` },
  }));
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'ann', events: late });
  await running.drained();
  other.s3Becomes('there');
  await bothHaveOnS3(120);
  await areFound('the same: 170 events');

  await readClickHouse(
    other.clickhouse.url,
    "ALTER TABLE events DELETE WHERE event = 'late' SETTINGS mutations_sync = 2",
    {
      database: running.database,
    },
  );
  await areFound('They differ: events');
  expect(await sluice(running, ['servers', 'compare', 'a1', 'a2', '--mend', '--yes'])).toMatchObject({ code: 0 });
  await bothHaveOnS3(120);
  await areFound('the same: 170 events');

  await running.writers['a2']?.stop();
  await other.clickhouse.kill9();
  await rm(dataDir, { recursive: true });
  await other.clickhouse.restart();
  expect(await sluice(running, COPY)).toEqual({ code: 0, output: expect.stringContaining('a2 is complete') });
  const writer = running.writers['a2'];
  if (!writer) throw new Error('a2 has no writer');
  running.writers['a2'] = await running.replace(writer);
  await submit({ event: 'late', timestamp: OLD }, 1);
  await bothHaveOnS3(121);
  await areFound('the same: 171 events');
});
