import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { RESTORE_ACCOUNT, sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { expectEqualServers } from '../kit/equal-servers.ts';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

test('a server whose disk is lost is restored from the backup of another one, and gets an identity of its own', async () => {
  await using backups = await makeTempDir();
  await using data = await makeTempDir();
  await using one = await ownClickHouse({ dataDir: join(data.path, 'one'), backupDir: backups.path });
  await using other = await ownClickHouse({ backupDir: backups.path });
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: one.url,
    name: 'restoreservers',
    servers: { a1: { url: one.url }, a2: { url: other.url } },
  });
  const { database } = running;
  const read = (url: string, sql: string) => readClickHouse(url, sql, { database });
  const identity = (url: string) =>
    read(url, 'SELECT server, group_id, state FROM database_identity ORDER BY recorded_at DESC LIMIT 1 FORMAT CSV');
  const urls = () => [running.services['ingest-api'].url];
  await using load = startLoad({ pipeline: running, urls, concurrency: 3 });
  const more = async () => {
    const before = load.acceptedSoFar();
    await until('more events', async () => load.acceptedSoFar() > before + 20);
  };
  await more();
  const to = join(backups.path, 'monday');
  const backup = await sluice(running, ['backup', '--to', to, '--server', 'a2']);
  expect(backup).toEqual({ code: 0, output: expect.stringContaining('The backup is complete') });
  const ids = await read(other.url, 'SELECT DISTINCT id FROM database_identity FORMAT TSV');
  await more();
  // A deletion that the backup lacks, and that a2 alone still has.
  expect((await running.deleteUser('since the backup')).status).toBe(202);
  const deletions = "SELECT count() FROM user_deletions WHERE user_id = 'since the backup'";
  await until('the deletion at a2', async () => (await read(other.url, deletions)) === '1');

  await running.services.writer.stop();
  await one.kill9();
  await rm(join(data.path, 'one'), { recursive: true });
  await one.restart();
  const restore = await sluice(running, ['restore', '--from', to, '--server', 'a1', '--yes'], RESTORE_ACCOUNT);
  expect(restore).toEqual({
    code: 0,
    output: expect.stringMatching(/It is of a2 \(group .*\.a2\), and becomes a1 \(group .*\.a1\)\..* is restored: /s),
  });
  expect(await read(one.url, deletions)).toBe('1');
  // Its writers have to delete the visitors of the user.
  const unsettled = "SELECT count() FROM identity_deletions WHERE user_id = 'since the backup' AND settled_at = 0";
  expect(await read(one.url, unsettled)).toBe('1');
  expect(await identity(one.url)).toBe(`"a1","${running.environment['KAFKA_GROUP_ID']}.a1","complete"`);
  expect(await read(one.url, 'SELECT DISTINCT id FROM database_identity FORMAT TSV')).not.toBe(ids);
  for (const table of ['writer_groups', 'writer_epochs', 'writer_positions']) {
    const groups = await read(one.url, `SELECT DISTINCT group_id FROM ${table} FORMAT TSV`);
    expect([table, groups]).toEqual([table, `${running.environment['KAFKA_GROUP_ID']}.a1`]);
  }
  await running.restart('writer');
  await more();

  const tally = await load.stop();
  await expectExactlyOnce(running, one.url, tally);
  await expectEqualServers(
    [one, other].map(({ url }) => ({ url, database })),
    tally,
  );

  // It is refused at a server of another range of partitions.
  await running.services.writer.stop();
  await running.writeServers({
    a1: { url: one.url, partitions: '0-2' },
    a2: { url: other.url, partitions: '3-5' },
  });
  const refused = await sluice(running, ['restore', '--from', to, '--server', 'a1', '--yes'], RESTORE_ACCOUNT);
  expect(refused).toEqual({
    code: 1,
    output: expect.stringContaining('The backup is of a server with the partitions all, and this one stores 0-2.'),
  });
  expect(await identity(one.url)).toMatch(/"a1".*"complete"/);
});
