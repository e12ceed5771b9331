import type { Stats } from 'node:fs';
import { mkdir, open, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sleep } from '../retry.ts';

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
  let own = await make(lock);
  while (own === undefined) {
    if (performance.now() > deadline) throw new LockTimeout(`${lock} is held by another process`);
    const found = await find(lock);
    if (found && Date.now() - found.mtimeMs > STALE_AFTER_MS) await removeOnly(lock, identity(found));
    await sleep(POLL_INTERVAL_MS);
    own = await make(lock);
  }
  try {
    return await work();
  } finally {
    await removeOnly(lock, own);
  }
}

/** Makes the file and gives its identity, or `undefined` when there is one. */
async function make(file: string): Promise<string | undefined> {
  try {
    await using handle = await open(file, 'wx', 0o600);
    await handle.writeFile(`${process.pid}\n`);
    return identity(await handle.stat());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    throw error;
  }
}

/**
 * Removes the lock if it is still the one with this identity. Only the one who made the file `<lock>.<identity>` may, so
 * that nobody else can put another lock in its place between the look at it and the removal.
 */
async function removeOnly(lock: string, wanted: string): Promise<void> {
  const claim = `${lock}.${wanted}`;
  if ((await make(claim)) === undefined) return;
  try {
    const found = await find(lock);
    if (found && identity(found) === wanted) await rm(lock, { force: true });
  } finally {
    await rm(claim, { force: true });
  }
}

async function find(lock: string): Promise<Stats | undefined> {
  return await stat(lock).catch(() => undefined);
}

/** Tells a lock from those that were made before and after it under the same name. */
function identity({ ino, mtimeMs }: Stats): string {
  return `${ino}-${mtimeMs}`;
}
