import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkJava, ensureKafkaLibs, hasKafkaLibs } from './kafka-libs.ts';
import { checkMaven } from './maven-libs.ts';
import { makeTempDir } from './testing/temp-dir.ts';

test('a missing Java is an error that says so', async () => {
  await expect(checkJava('no-such-java')).rejects.toMatchObject({ code: 'JAVA_MISSING' });
});

test.each([
  ['openjdk version "11.0.22" 2024-01-16', 'JAVA_TOO_OLD'],
  ['java version "1.8.0_402"', 'JAVA_TOO_OLD'],
])('%s is too old', async (version, code) => {
  await using dir = await makeTempDir();
  const java = join(dir.path, 'java');
  await writeFile(java, `#!/bin/sh\necho '${version}' >&2\n`, { mode: 0o755 });
  await expect(checkJava(java)).rejects.toMatchObject({ code });
});

test('the Java of this machine is new enough', async () => {
  expect(await checkJava()).toBeGreaterThanOrEqual(17);
});

test('a missing Maven is an error that says so', async () => {
  await expect(checkMaven('no-such-mvn')).rejects.toMatchObject({ code: 'MAVEN_MISSING' });
});

test('the jars of the broker and of its log binding are installed', async () => {
  const names = await readdir(await ensureKafkaLibs());
  expect(names).toEqual(
    expect.arrayContaining(['kafka_2.13-4.3.0.jar', expect.stringMatching(/^slf4j-simple-.*jar$/)]),
  );
  expect(await hasKafkaLibs()).toBe(true);
});
