import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { backupConfig } from '@sluice/cli/backup/config';
import { clientOf } from '@sluice/cli/backup/connect';
import { RestoredReplicas } from '@sluice/cli/backup/replicas';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { readMigrations } from '@sluice/shared/clickhouse/migrate';
import { loadConfig } from '@sluice/shared/config';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { RESTORE_ACCOUNT, sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { startReplicas } from '../kit/replicas.ts';
import { startService } from '../kit/service.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

test('a backup of a replica that lags has everything that its positions count, and all replicas are restored from it', async () => {
  await using backups = await makeTempDir();
  await using replicas = await startReplicas(['r1', 'r2', 'r3'], { backupDir: backups.path });
  const { r1, r2, r3 } = replicas.servers;
  const servers = { r1: { url: r1.url }, r2: { url: r2.url }, r3: { url: r3.url } };
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: r1.url,
    name: 'replicabackups',
    servers,
    env: { CLICKHOUSE_REPLICATION: 'replicated' },
  });
  const { database } = running;
  const restore = (...args: string[]) =>
    sluice(running, ['restore', '--from', join(backups.path, 'monday'), '--yes', ...args], RESTORE_ACCOUNT);
  const stored = async (url: string, where = '1') =>
    Number(await readClickHouse(url, `SELECT uniqExact(uuid) FROM ${database}.events WHERE ${where}`));
  const submit = async (user: string) => {
    const events = Array.from({ length: 60 }, () => ({ event: 'visit' }));
    await running.submit({ foreignUserGroupId: 'g', foreignUserId: user, events });
  };
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 3 });
  await submit('ann');
  await submit('ben');
  await eventually(() => stored(r1.url)).toBeGreaterThan(200);

  // Its positions come from others; events that these count do not come yet.
  await readClickHouse(r3.url, `SYSTEM STOP FETCHES ${database}.events`);
  await submit('joe');
  await eventually(() => stored(r1.url, "user_id = 'joe'")).toBe(60);
  await running.writers['r3']?.stop();
  await eventually(() => stored(r2.url)).toBeGreaterThan((await stored(r3.url)) + 50);
  let isDone = false;
  const backup = sluice(running, ['backup', '--server', 'r3', '--to', join(backups.path, 'monday')]).finally(() => {
    isDone = true;
  });
  const waits = "SELECT count() FROM system.processes WHERE query LIKE 'SYSTEM SYNC REPLICA events %'";
  await until('the backup to wait for the events', async () => isDone || (await readClickHouse(r3.url, waits)) !== '0');
  await readClickHouse(r3.url, `SYSTEM START FETCHES ${database}.events`);
  expect(await backup).toEqual({ code: 0, output: expect.stringContaining('The backup is complete') });

  expect(await restore()).toEqual({ code: 1, output: expect.stringContaining('Stop the writers first') });
  await submit('eve');
  await running.deleteUser('ben');
  await eventually(() => stored(r1.url, "user_id = 'eve'")).toBe(60);
  const tally = await load.stop();
  for (const writer of Object.values(running.writers)) await writer.stop();
  await r2.kill9();
  expect(await restore()).toEqual({ code: 1, output: expect.stringContaining('r2 does not answer') });
  await r2.restart();
  await running.writeServers({ r1: { url: r1.url }, r2: { url: r2.url } });
  expect(await restore()).toEqual({ code: 1, output: expect.stringContaining('Keeper knows 3 replicas') });
  await running.writeServers(servers);

  // A replica ends when the database was dropped: writers wait until the same command has run to its end.
  const broken = restore();
  const filling = `SELECT argMax(state, recorded_at) FROM ${database}.database_identity`;
  await until('the new database to be filled', async () =>
    readClickHouse(r1.url, filling).then(
      (state) => state === 'filling',
      () => false,
    ),
  );
  await r2.kill9();
  expect(await broken).toEqual({ code: 1, output: expect.stringContaining('run the same command again') });
  await r2.restart();
  const [port = 0] = await findFreePorts(1);
  const early = startService('writer', port, running.environment);
  await until('a writer to wait', async () => early.log().includes('the database is being filled'));
  await early.kill9();
  const beganAt = Math.floor(Date.now() / 1_000);
  expect(await restore('--server', 'r1')).toEqual({ code: 0, output: expect.stringContaining('is restored') });
  // Above the epochs of all writers before: one that froze stores nothing when it wakes up.
  for (const { url } of [r1, r2, r3]) {
    const newest = await readClickHouse(url, `SELECT max(incarnation) FROM ${database}.writer_epochs`);
    expect(Number(newest)).toBeGreaterThanOrEqual(beganAt);
  }

  for (const [name, writer] of Object.entries(running.writers)) running.writers[name] = await running.replace(writer);
  await running.drained();
  for (const { url } of [r1, r2, r3]) {
    await readClickHouse(url, `SYSTEM SYNC REPLICA ${database}.events`);
    await eventually(() => stored(url, "user_id = 'ben'")).toBe(0);
    for (const user of ['ann', 'joe', 'eve']) expect(await stored(url, `user_id = '${user}'`)).toBe(60);
    await expectExactlyOnce(running, url, tally);
  }
  expect((await running.get<{ total: number }>('/events?userId=joe&limit=0')).body.total).toBe(60);

  // As when a writer that starts meanwhile fills one that was dropped from another one that was not yet.
  for (const writer of Object.values(running.writers)) await writer.stop();
  const environment = {
    ...running.environment,
    ...RESTORE_ACCOUNT,
    CLICKHOUSE_SERVERS_FILE: '',
    CLICKHOUSE_SERVER: '',
  };
  await using clients = new AsyncDisposableStack();
  const restored = Object.entries(servers).map(([name, { url }]) => {
    const config = loadConfig(backupConfig, { ...environment, CLICKHOUSE_URL: url });
    const connect = (at: string) => {
      const client = clients.adopt(clientOf(config, 'test', at), (one) => one.close());
      const isKept = ({ query }: { readonly query: string }) => name === 'r2' && query.startsWith('DROP DATABASE');
      const command = async (call: Parameters<typeof client.command>[0]) =>
        isKept(call) ? await client.ping() : await client.command(call);
      return Object.assign(Object.create(client) as typeof client, { command });
    };
    return { name, config, connect };
  });
  const [first] = restored;
  if (!first) throw new Error('there is no replica');
  const replacing = new RestoredReplicas(restored, database).replace(
    first.connect('default'),
    { migrations: await readMigrations(), groups: ['replicabackups-writer'] },
    async () => undefined,
  );
  await expect(replacing).rejects.toThrow(/has got rows of before/);
});

test('a backup of one server becomes the database of replicas', async () => {
  await using backups = await makeTempDir();
  await using plain = await ownClickHouse({ backupDir: backups.path });
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: plain.url,
    name: 'toreplicas',
  });
  await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency: 3 });
  await until('events before the backup', async () => load.acceptedSoFar() > 200);
  const from = join(backups.path, 'plain');
  expect(await sluice(running, ['backup', '--to', from])).toMatchObject({ code: 0 });
  const atBackup = load.acceptedSoFar();
  await until('events after the backup', async () => load.acceptedSoFar() > atBackup + 100);
  await running.services.writer.stop();

  await using replicas = await startReplicas(['r1', 'r2'], { backupDir: backups.path });
  const servers = Object.entries(replicas.servers).map(([name, { url }]) => ({ name, url }));
  const file = join(backups.path, 'servers.json');
  await writeFile(file, JSON.stringify({ servers }));
  const env = { CLICKHOUSE_REPLICATION: 'replicated', CLICKHOUSE_SERVERS_FILE: file, CLICKHOUSE_URL: '' };
  expect(await sluice(running, ['restore', '--from', from, '--yes'], { ...RESTORE_ACCOUNT, ...env })).toEqual({
    code: 0,
    output: expect.stringContaining('is restored'),
  });
  for (const CLICKHOUSE_SERVER of ['r1', 'r2']) await running.startAnother('writer', { ...env, CLICKHOUSE_SERVER });
  await running.services['query-api'].stop();
  running.services['query-api'] = await running.startAnother('query-api', env);
  const tally = await load.stop();
  await running.drained();
  for (const { url } of Object.values(replicas.servers)) {
    await readClickHouse(url, `SYSTEM SYNC REPLICA ${running.database}.events`);
    await expectExactlyOnce(running, url, tally);
  }
});
