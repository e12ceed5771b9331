import { constants } from 'node:fs';
import { access, mkdtemp, readdir, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The file system that Linux keeps in memory. */
const MEMORY = '/dev/shm';

/** It is used when it has so much room, in bytes: a whole build needs less than half. */
const MEMORY_BYTES_MIN = 4 * 1_024 ** 3;

/**
 * Creates the folder for everything temporary of a run of tests, and removes those of runs that were killed. It is in memory
 * where that has room, because ClickHouse's many small files cost half as much there, unless `TMPDIR` is set.
 */
export async function createTemporaryFolder(): Promise<string> {
  const useMemory = process.env['TMPDIR'] === undefined && (await hasMemory());
  const parent = useMemory ? MEMORY : tmpdir();
  await removeAbandoned(parent, 'sluice-tests-');
  return await mkdtemp(join(parent, `sluice-tests-${process.pid}-`));
}

async function hasMemory(): Promise<boolean> {
  try {
    await access(MEMORY, constants.W_OK);
    const { bavail, bsize } = await statfs(MEMORY);
    return bavail * bsize >= MEMORY_BYTES_MIN;
  } catch {
    return false;
  }
}

/** Removes folders whose names are a prefix and the id of a process that has ended, and whatever comes after that. */
export async function removeAbandoned(parent: string, prefix: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    const pid = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : Number.NaN;
    if (pid > 0 && !isRunning(pid)) await rm(join(parent, name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process of another user is there, too.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
