import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createTemporaryFolder, removeAbandoned } from './temporary-folders.ts';

test('folders of processes that have ended are removed, and no others', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'sluice-abandoned-'));
  onTestFinished(() => rm(parent, { recursive: true }));
  const { stdout: ended } = await promisify(execFile)(process.execPath, ['-p', 'process.pid']);
  const kept = [`run-${process.pid}`, `run-${process.pid}-a`, 'run-', 'run-x', `other-${ended.trim()}`, 'run'];
  for (const name of [...kept, `run-${ended.trim()}`, `run-${ended.trim()}-a`])
    await mkdir(join(parent, name, 'deep'), { recursive: true });
  await removeAbandoned(parent, 'run-');
  expect(await readdir(parent)).toEqual(kept.toSorted());
  await removeAbandoned(join(parent, 'none'), 'run-');
});

test('TMPDIR says where the folder of a run is', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'sluice-parent-'));
  onTestFinished(() => rm(parent, { recursive: true }));
  vi.stubEnv('TMPDIR', parent);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect((await createTemporaryFolder()).startsWith(join(parent, `sluice-tests-${process.pid}-`))).toBe(true);
});
