import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sleep } from '../sleep.ts';

/** Work under a lock takes milliseconds; an older lock was left by a process that was killed. */
const STALE_AFTER_MS = 10_000;

const WAIT_MS_MAX = 30_000;
const POLL_INTERVAL_MS = 20;

/** Others held the lock for too long. */
export class LockTimeout extends Error {
  override readonly name = 'LockTimeout';
}

/**
 * Does the work while nobody else does any under the same path: whoever makes the file `<path>.lock` has the lock. Other
 * processes may run in other containers, where their ids mean nothing, so a lock that was left behind is known by its age.
 *
 * @throws {LockTimeout}
 * @throws the system's error when the lock cannot be made
 */
export async function withFileLock<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  const lock = `${path}.lock`;
  await mkdir(dirname(path), { recursive: true });
  const deadline = performance.now() + WAIT_MS_MAX;
  while (!(await make(lock))) {
    if (performance.now() > deadline) throw new LockTimeout(`${lock} is held by another process`);
    if ((await ageMs(lock)) > STALE_AFTER_MS) await rm(lock, { force: true });
    else await sleep(POLL_INTERVAL_MS);
  }
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
  }
}

async function make(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, `${process.pid}\n`, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function ageMs(lock: string): Promise<number> {
  try {
    return Date.now() - (await stat(lock)).mtimeMs;
  } catch {
    return 0;
  }
}
