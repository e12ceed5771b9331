import type { Stats } from 'node:fs';
import { mkdir, open, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sleep } from '../base/retry.ts';

/**
 * A lock that is older, in milliseconds, was left behind by a process that was killed: work takes milliseconds. So was one
 * from so far in the future: the clock was set back since then.
 */
const STALE_AFTER_MS = 10_000;

const WAIT_MS_MAX = 30_000;
const POLL_INTERVAL_MS = 20;

/** Another process holds the lock for too long. */
export class LockTimeout extends Error {
  override readonly name = 'LockTimeout';
}

/**
 * Runs the work while no other process runs work for the same path. The process that creates the file `<path>.lock` has
 * the lock. A lock that was left behind is recognised by its age, because the process may have run in another container,
 * where its id means nothing.
 *
 * @throws {LockTimeout} after 30 s
 * @throws the system's error when the file cannot be created
 */
export async function withFileLock<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  const lock = `${path}.lock`;
  await mkdir(dirname(path), { recursive: true });
  const deadline = performance.now() + WAIT_MS_MAX;
  let own = await create(lock);
  while (own === undefined) {
    if (performance.now() > deadline) throw new LockTimeout(`${lock} is held by another process`);
    const found = await find(lock);
    if (found && Math.abs(Date.now() - found.mtimeMs) > STALE_AFTER_MS) await removeOnly(lock, identity(found));
    await sleep(POLL_INTERVAL_MS);
    own = await create(lock);
  }
  try {
    return await work();
  } finally {
    await removeOnly(lock, own);
  }
}

/** Creates the file and returns its identity, or `undefined` when the file exists. */
async function create(file: string): Promise<string | undefined> {
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
 * Removes the lock if it is still the one with this identity. Only the process that creates `<lock>.<identity>` may remove
 * it, so that no other process can replace the lock between the check and the removal.
 */
async function removeOnly(lock: string, wanted: string): Promise<void> {
  const claim = `${lock}.${wanted}`;
  if ((await create(claim)) === undefined) return;
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

/** Distinguishes a lock from those before and after it with the same name. */
function identity({ ino, mtimeMs }: Stats): string {
  return `${ino}-${mtimeMs}`;
}
