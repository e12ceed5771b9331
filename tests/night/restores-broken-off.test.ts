import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { parseBackupLocation } from '@sluice/cli/backup/backup-location';
import { backupConfig } from '@sluice/cli/backup/config';
import { clientOf } from '@sluice/cli/backup/connect';
import { recordBackup } from '@sluice/cli/backup/manifest';
import { Restore } from '@sluice/cli/backup/run-restore';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BackedUp, backUp, RESTORE_ACCOUNT, sluice, startBackedUp } from '../kit/backups.ts';
import type { Pipeline } from '../kit/pipeline.ts';

// The tests of this file build on each other.

const started = new AsyncDisposableStack();
let system: BackedUp;
let running: Pipeline;
let whole: string;

const place = (name: string) => system.place(name);
const read = (sql: string, database?: string) => system.read(sql, database);
const submit = (count: number, user: string) => system.submit(count, user);
const contents = () => system.contents();

beforeAll(async () => {
  system = started.use(await startBackedUp('brokenoff'));
  running = system.running;
  whole = place('whole');
  expect(await sluice(running, ['backup', '--to', whole])).toMatchObject({ code: 0 });
});
afterAll(() => started.disposeAsync());

test('a backup that is interrupted is ended in ClickHouse as well', async () => {
  const interrupted = new AbortController();
  const begun = async (part: number) => {
    if (part === 1) interrupted.abort();
  };
  const options = { signal: interrupted.signal, bytesPerSecond: 5_000 };
  await expect(backUp(running, place('interrupted'), begun, options)).rejects.toThrow('it was interrupted');
  expect(await read("SELECT count() FROM system.backups WHERE status = 'CREATING_BACKUP'")).toBe('0');
  expect(await readdir(place('interrupted'))).not.toContain('tables');
});

test('of two backups at the same time one fails', async () => {
  const config = loadConfig(backupConfig, running.environment);
  const client = clientOf(config, 'test', config.CLICKHOUSE_DATABASE);
  started.defer(() => client.close());
  await expect(
    backUp(running, place('first'), () => recordBackup(client, crypto.randomUUID(), 'second')),
  ).rejects.toThrow('Another backup of this database began at the same time');
});

test('a restore that is killed changes nothing, and can be repeated; what was stored since comes from Kafka', async () => {
  await submit(20, 'bob');
  await submit(20, 'eve');
  await running.deleteUser('eve');
  await running.drained();
  await running.services.writer.stop();
  const before = await contents();
  const child = execFile(process.execPath, [programFile('sluice'), 'restore', '--from', whole, '--yes'], {
    env: { ...inherited(), ...running.environment, ...RESTORE_ACCOUNT },
  });
  const scratch = `${running.database}_restoring`;
  await until('the restore to begin', async () => (await read(`EXISTS DATABASE ${scratch}`)) === '1');
  child.kill('SIGKILL');
  expect((await contents()).replace(`\n${scratch}`, '')).toBe(before);

  await until('the restore to be possible', async () => {
    const { code, output } = await sluice(running, ['restore', '--from', whole, '--yes'], RESTORE_ACCOUNT);
    // ClickHouse goes on for a moment with what the killed one has begun.
    if (code !== 0) expect(output).toContain('Another restore is running');
    return code === 0;
  });
  // The deletions of the database that was replaced are kept.
  expect(await read('SELECT DISTINCT user_id FROM pending_deletions')).toBe('eve');
  expect(await read("SELECT count() FROM events WHERE user_id != 'ann'")).toBe('0');
  await running.restart('writer');
  await running.drained();
  expect(
    await read("SELECT user_id, count() FROM events WHERE user_id != 'eve' GROUP BY 1 ORDER BY 1 FORMAT CSV"),
  ).toBe('"ann",500\n"bob",20');
});

test('a restore that ends between its renames has changed nothing, or the next one renames the database back', async () => {
  await running.services.writer.stop();
  const before = await contents();
  const config = loadConfig(backupConfig, { ...running.environment, ...RESTORE_ACCOUNT });
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const server = clientOf(config, 'test', 'default');
  started.defer(() => server.close());
  async function restoreUntil(failing: RegExp): Promise<void> {
    const refusing: typeof server = Object.assign(Object.create(server), {
      command: async (...args: Parameters<typeof server.command>) => {
        const { query, query_params = {} } = args[0];
        if (query.startsWith('RENAME') && failing.test(String(query_params['from']))) throw new Error('no rename');
        return await server.command(...args);
      },
    });
    const signal = new AbortController().signal;
    const scratchOf = (database: string) => clientOf(config, 'test', database);
    const from = parseBackupLocation('--from', whole, config, '/');
    const owner = { group: config.KAFKA_GROUP_ID, server: '', partitions: 'all' };
    const restoring = new Restore({
      config,
      owner,
      others: undefined,
      kafka,
      server: refusing,
      scratchOf,
      location: from,
      signal,
    });
    await expect(restoring.run(await restoring.plan(), () => {})).rejects.toThrow('no rename');
  }
  await restoreUntil(/_restoring$/);
  expect(await contents()).toBe(before);
  await restoreUntil(/_(restoring|replaced)$/);
  expect(await read(`EXISTS DATABASE ${running.database}`, 'default')).toBe('0');
  expect((await sluice(running, ['restore', '--from', whole], RESTORE_ACCOUNT)).code).toBe(1);
  expect(await contents()).toBe(before);
  await running.restart('writer');
});

test('what Kafka no longer has is named, and given up with consent; the writers go on without a halt', async () => {
  await submit(60, 'kim');
  await running.services.writer.stop();
  const config = loadConfig(backupConfig, running.environment);
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const topic = `${config.KAFKA_TOPIC_PREFIX}events`;
  await withAdmin(kafka, async (admin) => {
    const ends = await admin.fetchTopicOffsets(topic);
    const partitions = ends.map(({ partition, high }) => ({ partition, offset: high }));
    await admin.deleteTopicRecords({ topic, partitions });
  });
  const { code, output } = await sluice(running, ['restore', '--from', whole, '--yes'], RESTORE_ACCOUNT);
  expect([code, output]).toEqual([
    0,
    expect.stringMatching(/Missing: Kafka deleted \d+ messages of brokenoff\.events\/\d/),
  ]);
  await running.restart('writer');
  await submit(30, 'zoe');
  expect(await read('SELECT user_id, count() FROM events GROUP BY 1 ORDER BY 1 FORMAT CSV')).toBe(
    '"ann",500\n"zoe",30',
  );
  expect(await read('SELECT count() FROM writer_halts')).toBe('0');
});
