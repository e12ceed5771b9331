import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..', '..', '..');

/**
 * Installs packages from npm, with the project's pnpm. No script of a package runs.
 *
 * @param packages a folder with `package.json`, `pnpm-lock.yaml` and `pnpm-workspace.yaml`
 * @param folder gets the `node_modules`
 */
export async function installNpmPackages(packages: string, folder: string): Promise<void> {
  const files = ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml'].map((name) => join(packages, name));
  await installOnce(folder, files, async () => {
    for (const file of files) await cp(file, join(folder, relative(packages, file)));
    const { engines } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const pnpm = ['exec', '--yes', `--package=pnpm@${engines.pnpm}`, '--', 'pnpm'];
    const install = [...pnpm, 'install', '--frozen-lockfile', '--ignore-scripts'];
    await promisify(execFile)('npm', install, { cwd: folder });
  });
}

/** Runs `install` with an empty folder, unless that has succeeded with the same contents of the files before. */
export async function installOnce(
  folder: string,
  files: readonly string[],
  install: () => Promise<void>,
): Promise<void> {
  const stampFile = join(folder, '.installed');
  const hash = createHash('sha256');
  for (const file of files) hash.update(await readFile(file));
  const wanted = hash.digest('hex');
  if ((await readFile(stampFile, 'utf8').catch(() => undefined)) === wanted) return;
  console.error(`Installing ${files.map((file) => relative(ROOT, file)).join(' and ')}`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await install();
  await writeFile(stampFile, wanted);
}
