import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { type EngineProcessSpec, startEngineProcess } from './engine-process.ts';
import { guardCommand } from './process-guard.ts';
import { isAlive, orphan } from './testing/orphan.ts';
import { makeTempDir } from './testing/temp-dir.ts';

function specFor(script: string, dir: string): EngineProcessSpec {
  return {
    name: 'the engine',
    ...guardCommand('sh', ['-c', script]),
    cwd: dir,
    logFile: join(dir, 'engine.log'),
    probe: async () => {},
    readyTimeoutMs: 60_000,
    stopTimeoutMs: 300,
  };
}

test('a guarded process ends when its parent is killed', async () => {
  await using dir = await makeTempDir();
  const [pid = 0] = await orphan('sleep', dir.path);
  await eventually(() => isAlive(pid)).toBe(false);
});

test('a process that ignores SIGTERM is killed after the stop timeout', async () => {
  await using dir = await makeTempDir();
  const spec = specFor('trap "" TERM; echo deaf; while :; do sleep 1; done', dir.path);
  const probe = async () => expect(await readFile(spec.logFile, 'utf8')).toContain('deaf');
  const engine = await startEngineProcess({ ...spec, probe });
  await engine.stop();
  expect(isAlive(engine.pid)).toBe(false);
  expect((await engine.exited).signal).toBe('SIGKILL');
});

test('stop and kill9 may be called again when the process has ended', async () => {
  await using dir = await makeTempDir();
  const engine = await startEngineProcess(specFor('sleep 600', dir.path));
  await engine.kill9();
  await engine.stop();
  await engine.kill9();
  expect(await engine.exited).toEqual({ code: null, signal: 'SIGKILL' });
});

test('a process that ends while starting is reported with its exit code and the end of its log', async () => {
  await using dir = await makeTempDir();
  const probe = async () => Promise.reject(new Error('nothing listens'));
  const start = startEngineProcess({ ...specFor('echo the disk is full; exit 3', dir.path), probe });
  await expect(start).rejects.toMatchObject({
    code: 'ENGINE_EXITED',
    message: expect.stringMatching(/the engine ended with exit code 3.*\nthe disk is full/s),
  });
});

test('a process that is never ready is killed, and the error has the last failure of its probe', async () => {
  await using dir = await makeTempDir();
  const probe = async () => Promise.reject(new Error('nothing listens'));
  const start = startEngineProcess({ ...specFor('echo $$; exec sleep 600', dir.path), probe, readyTimeoutMs: 300 });
  const error = await start.catch((reason: Error) => reason);
  expect(error).toMatchObject({ code: 'ENGINE_NOT_READY', message: expect.stringContaining('nothing listens') });
  const pid = Number(/(\d+)$/.exec(String(error))?.[1]);
  expect(isAlive(pid)).toBe(false);
});
