import { execFile } from 'node:child_process';
import { cp, mkdir, open, readdir, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
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

const started = new AsyncDisposableStack();
let system: BackedUp;
let running: Pipeline;
let whole: string;

const place = (name: string) => system.place(name);
const read = (sql: string, database?: string) => system.read(sql, database);
const submit = (count: number, user: string) => system.submit(count, user);

/** The whole database, and whether a restore has left another one. */
async function contents(): Promise<string> {
  const events = await read('SELECT uuid, user_id FROM events ORDER BY ALL FORMAT TSV');
  const positions = await read(
    'SELECT topic, partition, next_offset FROM writer_positions FINAL ORDER BY ALL FORMAT TSV',
  );
  const databases = await read("SELECT name FROM system.databases WHERE name LIKE 'test_%' ORDER BY ALL FORMAT TSV");
  return `${events}\n${positions}\n${databases}`;
}

/** Returns the largest file of a part of a backup. */
async function largestFile(part: string): Promise<string> {
  const files = await readdir(part, { recursive: true, withFileTypes: true });
  const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
  const sizes = await Promise.all(paths.map(async (path) => ({ path, size: (await stat(path)).size })));
  return sizes.filter(({ path }) => path.endsWith('.bin')).sort((one, other) => other.size - one.size)[0]?.path ?? '';
}

beforeAll(async () => {
  system = started.use(await startBackedUp('backups'));
  running = system.running;
  whole = place('whole');
  expect(await sluice(running, ['backup', '--to', whole])).toMatchObject({ code: 0 });
});
afterAll(() => started.disposeAsync());

test('a restore while writers are running changes nothing', async () => {
  const before = await contents();
  const end = await sluice(running, ['restore', '--from', whole, '--yes'], RESTORE_ACCOUNT);
  expect(end).toEqual({ code: 1, output: expect.stringContaining('Nothing was restored: Stop the writers first') });
  expect(await contents()).toBe(before);
  await running.services.writer.stop();
});

test('a restore that nobody has confirmed says what it would do, and changes nothing', async () => {
  const before = await contents();
  const { code, output } = await sluice(running, ['restore', '--from', whole], RESTORE_ACCOUNT);
  expect([code, output]).toEqual([
    1,
    expect.stringMatching(/is replaced: \d+ rows in \d+ tables.*Kafka has everything/s),
  ]);
  expect(output).toMatch(/nothing was restored\n$/);
  expect(await contents()).toBe(before);
});

const BROKEN: Readonly<Record<string, (copy: string) => Promise<unknown>>> = {
  'a file is cut off': async (copy) => await truncate(await largestFile(join(copy, 'events')), 100),
  'a file is missing': async (copy) => await rm(await largestFile(join(copy, 'tables'))),
  'a byte is another one': async (copy) => {
    await using file = await open(await largestFile(join(copy, 'events')), 'r+');
    await file.write(Buffer.from([0xff, 0x00, 0xff]), 0, 3, 60);
  },
  'the first list of files is cut off': async (copy) => await truncate(join(copy, 'state/.backup'), 300),
  'another list of files is empty': async (copy) => await truncate(join(copy, 'events/.backup'), 0),
  'a part is missing': async (copy) => await rm(join(copy, 'tables'), { recursive: true }),
  'there is nothing': async (copy) => await rm(copy, { recursive: true }),
  'it is a folder of something else': async (copy) => {
    await rm(copy, { recursive: true });
    await mkdir(join(copy, 'state'), { recursive: true });
  },
  'it is a backup of something else': async (copy) => {
    await rm(copy, { recursive: true });
    await read('CREATE TABLE default.other (n UInt8) ENGINE = MergeTree ORDER BY n');
    await read(`BACKUP TABLE default.other TO File('${copy}/state')`);
  },
  'it is of a newer version': async (copy) => {
    await rm(join(copy, 'state'), { recursive: true });
    await read(`INSERT INTO backups SELECT * REPLACE (generateUUIDv4() AS id, started_at + 1 AS started_at,
      9999 AS migration, '99.0.0' AS sluice_version) FROM backups FINAL`);
    const tables = ['backups', 'schema_migrations', 'pending_deletions'];
    const list = tables.map((table) => `TABLE ${running.database}.${table} AS sluice.${table}`).join(', ');
    await read(`BACKUP ${list} TO File('${copy}/state')`);
    await read('ALTER TABLE backups DELETE WHERE migration = 9999');
  },
};

const REASONS: Readonly<Record<string, RegExp>> = {
  'a file is cut off': /unexpected size/,
  'a file is missing': /No such file/,
  'a byte is another one': /The backup is broken: events, part .*hecksum/s,
  'the first list of files is cut off': /The backup is broken: .*state\/\.backup, its list of files, is cut off/,
  'another list of files is empty': /The backup is broken: .*events\/\.backup, its list of files, is cut off/,
  'a part is missing': /no complete backup of Sluice/,
  'there is nothing': /no complete backup of Sluice/,
  'it is a folder of something else': /no complete backup of Sluice/,
  'it is a backup of something else': /no complete backup of Sluice/,
  'it is of a newer version': /Sluice 99\.0\.0 with migration 9999, and this version knows \d+/,
};

test.each(Object.keys(BROKEN))('a backup is refused, and nothing changed: %s', async (what) => {
  const copy = place(`broken ${Object.keys(BROKEN).indexOf(what)}`);
  await cp(whole, copy, { recursive: true });
  await BROKEN[what]?.(copy);
  const before = await contents();
  const { code, output } = await sluice(running, ['restore', '--from', copy, '--yes'], RESTORE_ACCOUNT);
  expect(output).toMatch(REASONS[what] as RegExp);
  expect(code).toBe(1);
  expect(output).toContain('Nothing was restored: ');
  expect(await contents()).toBe(before);
});

test.each([
  [{ KAFKA_GROUP_ID: 'another' }, 'The backup is of the group backups-writer, and KAFKA_GROUP_ID is another.'],
  [{ KAFKA_TOPIC_PREFIX: 'another.' }, 'KAFKA_TOPIC_PREFIX is "another."'],
  [{ KAFKA_PARTITIONS: '12' }, 'The backup is of 6 partitions, and KAFKA_PARTITIONS is 12.'],
])('a backup is refused with %j', async (env, reason) => {
  const before = await contents();
  const { code, output } = await sluice(running, ['restore', '--from', whole, '--yes'], { ...RESTORE_ACCOUNT, ...env });
  expect(output).toContain(reason);
  expect(code).toBe(1);
  expect(await contents()).toBe(before);
});

test('a backup is never overwritten, and ClickHouse must be allowed to write it', async () => {
  const again = await sluice(running, ['backup', '--to', whole]);
  expect(again).toEqual({
    code: 1,
    output: expect.stringMatching(/There is no backup: .*already exists.*\n.*another place/),
  });
  const elsewhere = await sluice(running, ['backup', '--to', '/nowhere']);
  expect(elsewhere).toEqual({ code: 1, output: expect.stringMatching(/not allowed.*\n.*backups\.allowed_path/) });
});

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
  await running.restart('writer');
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
    expect.stringMatching(/Missing: Kafka deleted \d+ messages of backups\.events\/\d/),
  ]);
  await running.restart('writer');
  await submit(30, 'zoe');
  expect(await read('SELECT user_id, count() FROM events GROUP BY 1 ORDER BY 1 FORMAT CSV')).toBe(
    '"ann",500\n"zoe",30',
  );
  expect(await read('SELECT count() FROM writer_halts')).toBe('0');
});
