import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const PACKAGES = join(import.meta.dirname, 'packages');
const ROOT = join(import.meta.dirname, '..', '..');
const CACHE = join(ROOT, '.cache', 'clients');

/** The folder of the clients from npm: it has a `node_modules`. */
export const NPM_FOLDER = join(CACHE, 'npm');

/** The Python of the virtual environment that has the requirements of `packages/python-<name>.txt`. */
export function pythonOf(name: string): string {
  return join(CACHE, `python-${name}`, 'bin', 'python');
}

/**
 * Installs the clients of `packages` into `.cache/clients`, where they are not installed yet. No script of a package runs.
 *
 * @param pythonNames the `<name>` of each `packages/python-<name>.txt`
 */
export async function installClients(pythonNames: readonly string[]): Promise<void> {
  await Promise.all([installNpm(), ...pythonNames.map((name) => installPython(name))]);
}

async function installNpm(): Promise<void> {
  const files = ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml'];
  await installOnce(NPM_FOLDER, files, async () => {
    for (const file of files) await cp(join(PACKAGES, file), join(NPM_FOLDER, file));
    const { engines } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const pnpm = ['exec', '--yes', `--package=pnpm@${engines.pnpm}`, '--', 'pnpm'];
    await run('npm', [...pnpm, 'install', '--frozen-lockfile', '--ignore-scripts'], { cwd: NPM_FOLDER });
  });
}

async function installPython(name: string): Promise<void> {
  const requirements = `python-${name}.txt`;
  const folder = join(CACHE, `python-${name}`);
  await installOnce(folder, [requirements], async () => {
    await run('python3', ['-m', 'venv', folder]).catch((cause) => {
      const remedy = 'Install it, on Debian with: sudo apt-get install python3 python3-venv';
      throw new Error(`The Python clients need python3 with its venv. ${remedy}`, { cause });
    });
    // Wheels only: a source distribution would run its setup.py. Everything is pinned, so nothing is resolved.
    const options = ['--only-binary=:all:', '--no-deps', '--disable-pip-version-check'];
    await run(pythonOf(name), ['-m', 'pip', 'install', ...options, '-r', join(PACKAGES, requirements)]);
  });
}

/** Runs `install` with an empty folder, unless that has succeeded with the same contents of the files before. */
async function installOnce(folder: string, files: readonly string[], install: () => Promise<void>): Promise<void> {
  const stampFile = join(folder, '.installed');
  const hash = createHash('sha256');
  for (const file of files) hash.update(await readFile(join(PACKAGES, file)));
  const wanted = hash.digest('hex');
  if ((await readFile(stampFile, 'utf8').catch(() => undefined)) === wanted) return;
  console.error(`Installing ${files.join(' and ')} of tests/clients/packages`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await install();
  await writeFile(stampFile, wanted);
}
