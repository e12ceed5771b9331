import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, test } from 'vitest';
import type { FileReport } from './test-report.ts';
import { readSeconds, recordSeconds } from './test-seconds.ts';

function reportOf(file: string, seconds: number): FileReport {
  return { file, seconds, passed: 1, failed: 0, skipped: 0, isBroken: false, isLate: false, failures: [] };
}

test('each run adds the seconds of its files to those of earlier runs', async () => {
  await using dir = await makeTempDir();
  await recordSeconds(dir.path, [reportOf('b.test.ts', 2), reportOf('a.test.ts', 1)]);
  await recordSeconds(dir.path, [reportOf('b.test.ts', 3), reportOf('c.test.ts', 4), reportOf('d.fixture.ts', 5)]);
  const kept = await readFile(join(dir.path, '.cache', 'test-seconds.json'), 'utf8');
  expect(Object.entries(JSON.parse(kept))).toEqual([
    ['a.test.ts', 1],
    ['b.test.ts', 3],
    ['c.test.ts', 4],
  ]);
});

test('the order of the files is that of tests/seconds.json, if there is one', async () => {
  await using dir = await makeTempDir();
  expect(await readSeconds(dir.path)).toEqual({});
  await mkdir(join(dir.path, 'tests'));
  await writeFile(join(dir.path, 'tests', 'seconds.json'), '{"a.test.ts": 1.5}');
  expect(await readSeconds(dir.path)).toEqual({ 'a.test.ts': 1.5 });
});
