import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What is not copied: the history, what is made anew, and the dependencies, which are linked. */
const LEFT_OUT = new Set(['.git', '.cache', '.sluice', 'node_modules']);

/** A copy of the working tree whose files can be changed without harm. */
export interface WorkingCopy extends AsyncDisposable {
  readonly path: string;
  /** Runs `work` while one file has another content. */
  withFile<Result>(file: string, content: string, work: () => Promise<Result>): Promise<Result>;
}

/** Copies the working tree of `root` into its `.cache`, with the dependencies linked, so that nothing is installed. */
export async function createWorkingCopy(root: string): Promise<WorkingCopy> {
  const folder = join(root, '.cache', 'mutate');
  const path = join(folder, String(process.pid));
  await mkdir(folder, { recursive: true });
  await removeStale(folder);
  await mkdir(path);
  for (const name of await readdir(root)) {
    if (LEFT_OUT.has(name)) continue;
    // Links of a package to its dependencies and to other packages are relative: the copies link to the copies.
    await cp(join(root, name), join(path, name), { recursive: true, verbatimSymlinks: true });
  }
  // The engines' downloads.
  await symlink(join(root, '.cache'), join(path, '.cache'));
  await linkModules(join(root, 'node_modules'), join(path, 'node_modules'));
  return {
    path,
    async withFile(file, content, work) {
      const original = await readFile(join(path, file));
      await writeFile(join(path, file), content);
      try {
        return await work();
      } finally {
        await writeFile(join(path, file), original);
      }
    },
    async [Symbol.asyncDispose]() {
      await rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/** Links each installed package, but the project's own ones to their copies; caches of tools are not shared. */
async function linkModules(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const name of await readdir(from)) {
    if (name === '@sluice') await cp(join(from, name), join(to, name), { recursive: true, verbatimSymlinks: true });
    else if (!name.startsWith('.vite')) await symlink(join(from, name), join(to, name));
  }
}

/** Removes what an interrupted run has left behind. */
async function removeStale(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!isRunning(Number(name))) await rm(join(folder, name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
