import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installNpmPackages, installOnce } from '@sluice/local-stack/install-packages';
import { ensureMavenLibs } from '@sluice/local-stack/maven-libs';

const run = promisify(execFile);

const PACKAGES = join(import.meta.dirname, 'packages');
const ROOT = join(import.meta.dirname, '..', '..', '..');
const CACHE = join(ROOT, '.cache', 'clients');

/** The folder of the clients from npm: it has a `node_modules`. */
export const NPM_FOLDER = join(CACHE, 'npm');

/** The Python of the virtual environment that has the requirements of `packages/python-<name>.txt`. */
export function pythonOf(name: string): string {
  return join(CACHE, `python-${name}`, 'bin', 'python');
}

/** The command that runs a program in one file of Java, with the jars of `packages/java-<name>.xml`. */
export function javaOf(name: string): readonly string[] {
  return ['java', '-cp', join(javaFolder(name), 'libs', '*')];
}

const javaFolder = (name: string) => join(CACHE, `java-${name}`);

/**
 * Downloads the jars of clients into `.cache/clients`, where they are not yet.
 *
 * @param names the `<name>` of each `packages/java-<name>.xml`
 */
export async function installJavaClients(names: readonly string[]): Promise<void> {
  for (const name of names) {
    await ensureMavenLibs({
      title: `the Java client ${name}`,
      size: '5 MB',
      pomFile: join(PACKAGES, `java-${name}.xml`),
      installedDir: javaFolder(name),
    });
  }
}

/**
 * Installs the clients of `packages` into `.cache/clients`, where they are not installed yet. No script of a package runs.
 *
 * @param pythonNames the `<name>` of each `packages/python-<name>.txt`
 */
export async function installClients(pythonNames: readonly string[]): Promise<void> {
  await Promise.all([installNpmPackages(PACKAGES, NPM_FOLDER), installPythonClients(pythonNames)]);
}

async function installPythonClients(names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const installer = join(CACHE, 'python-installer');
  await installOnce(installer, [import.meta.filename], () => makeEnvironment(installer));
  await Promise.all(names.map((name) => installPython(name, join(installer, 'bin', 'python'))));
}

/** Makes a virtual environment; one with pip takes six seconds of a core, so only one has it. */
async function makeEnvironment(folder: string, ...options: readonly string[]): Promise<void> {
  await run('python3', ['-m', 'venv', ...options, folder]).catch((cause) => {
    const remedy = 'Install it, on Debian with: sudo apt-get install python3 python3-venv';
    throw new Error(`The Python clients need python3 with its venv. ${remedy}`, { cause });
  });
}

/** @param installer the Python of an environment that has pip, and is of the same version */
async function installPython(name: string, installer: string): Promise<void> {
  const requirements = join(PACKAGES, `python-${name}.txt`);
  const folder = join(CACHE, `python-${name}`);
  await installOnce(folder, [requirements], async () => {
    await makeEnvironment(folder, '--without-pip');
    // Wheels only: a source distribution would run its setup.py. Everything is pinned, so nothing is resolved. Python
    // compiles what is imported at its first use.
    const options = ['--only-binary=:all:', '--no-deps', '--no-compile', '--disable-pip-version-check'];
    const into = ['--prefix', folder, '--ignore-installed'];
    await run(installer, ['-m', 'pip', 'install', ...options, ...into, '-r', requirements]);
  });
}
