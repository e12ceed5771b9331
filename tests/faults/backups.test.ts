import { cp, mkdir, open, readdir, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BackedUp, RESTORE_ACCOUNT, sluice, startBackedUp } from '../kit/backups.ts';
import type { Pipeline } from '../kit/pipeline.ts';

const started = new AsyncDisposableStack();
let system: BackedUp;
let running: Pipeline;
let whole: string;

const place = (name: string) => system.place(name);
const read = (sql: string) => system.read(sql);
const contents = () => system.contents();

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
