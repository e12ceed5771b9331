import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BOOTSTRAP, ensureKafkaArchive } from './kafka-archive.ts';
import { makeTempDir } from './testing/temp-dir.ts';

/** Does what a broker does that ends. */
async function writeBoth(dir: string, javaOption: string): Promise<string> {
  await mkdir(dir);
  await writeFile(join(dir, BOOTSTRAP), 'metadata');
  await writeFile(javaOption.replace('-XX:ArchiveClassesAtExit=', ''), 'classes');
  return dir;
}

test('an archive is made once, beside the jars', async () => {
  await using dir = await makeTempDir();
  const libs = join(dir.path, 'libs');
  const archive = await ensureKafkaArchive(libs, writeBoth);
  if (!archive) throw new Error('there is no archive');
  expect(await readFile(archive.classesFile, 'utf8')).toBe('classes');
  expect(await readFile(archive.bootstrapFile, 'utf8')).toBe('metadata');
  const again = await ensureKafkaArchive(libs, () => Promise.reject(new Error('made twice')));
  expect(again).toEqual(archive);
  expect(await readdir(dir.path)).toHaveLength(1);
});

test.each([
  ['the broker does not start', () => Promise.reject(new Error('no broker'))],
  [
    'Java writes no archive',
    async (dir: string) => {
      await mkdir(dir);
      await writeFile(join(dir, BOOTSTRAP), 'metadata');
      return dir;
    },
  ],
])('where %s, there is none, and nothing is left of it', async (_, make) => {
  await using dir = await makeTempDir();
  expect(await ensureKafkaArchive(join(dir.path, 'libs'), make)).toBeUndefined();
  expect(await readdir(dir.path)).toEqual([]);
});

test('a folder that cannot be written is no error', async () => {
  expect(await ensureKafkaArchive('/proc/sluice/libs', writeBoth)).toBeUndefined();
});
