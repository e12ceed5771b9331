import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeAbandoned } from '../temporary-folders.ts';

/** Not copied: history, caches and data, and the dependencies, which are linked. */
const LEFT_OUT = new Set(['.git', '.cache', '.sluice', 'node_modules']);

/** A copy of the working tree whose files may be changed. */
export interface WorkingCopy extends AsyncDisposable {
  readonly path: string;
  /** Runs `work` while a file has other content, then restores the file. */
  withFile<Result>(file: string, content: string, work: () => Promise<Result>): Promise<Result>;
}

/** Copies the working tree at `root` into its `.cache`. Dependencies are linked, so nothing is installed. */
export async function createWorkingCopy(root: string): Promise<WorkingCopy> {
  const folder = join(root, '.cache', 'mutate');
  const path = join(folder, String(process.pid));
  await mkdir(folder, { recursive: true });
  await removeAbandoned(folder, '');
  await mkdir(path);
  for (const name of await readdir(root)) {
    if (LEFT_OUT.has(name)) continue;
    // A package's links to other packages are relative, so a copied package links to copies.
    await cp(join(root, name), join(path, name), { recursive: true, verbatimSymlinks: true });
  }
  // Holds the downloaded engines.
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

/** Links each installed package. The project's own packages link to their copies; tool caches are not shared. */
async function linkModules(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const name of await readdir(from)) {
    if (name === '@sluice') await cp(join(from, name), join(to, name), { recursive: true, verbatimSymlinks: true });
    else if (!name.startsWith('.vite')) await symlink(join(from, name), join(to, name));
  }
}
