import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { installNpmPackages } from '@sluice/local-stack/install-packages';
import type { WorkingCopy } from './working-copy.ts';

/**
 * Runs Stryker over files of a copy of the working tree, with the tests of their folders, and prints which of its mutations
 * no test notices.
 *
 * @param files TypeScript files, from the root of the repository
 * @returns Stryker's exit code
 */
export async function runStryker(
  root: string,
  copy: WorkingCopy,
  files: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const folder = join(root, '.cache', 'stryker');
  await installNpmPackages(join(import.meta.dirname, 'packages'), folder);
  const modules = join(folder, 'node_modules', '@stryker-mutator');
  const options = {
    testRunner: 'vitest',
    plugins: [join(modules, 'vitest-runner', 'dist', 'src', 'index.js')],
    vitest: { configFile: 'scripts/mutate/vitest.config.ts', related: false },
    mutate: files,
    coverageAnalysis: 'perTest',
    // One set of engines.
    concurrency: 1,
    inPlace: true,
    checkers: [],
    reporters: ['clear-text', 'progress-append-only'],
    clearTextReporter: { logTests: false, reportTests: false },
    // The longest of these wait for engines.
    timeoutMS: 60_000,
  };
  const optionsFile = join(copy.path, 'stryker.config.json');
  await writeFile(optionsFile, JSON.stringify(options));
  const stryker = join(modules, 'core', 'bin', 'stryker.js');
  const folders = new Set(files.map((file) => dirname(file)));
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', stryker, 'run', optionsFile], {
    cwd: copy.path,
    env: { ...process.env, SLUICE_MUTATE_FOLDERS: [...folders].join(',') },
    stdio: ['ignore', 'inherit', 'inherit'],
    signal,
    killSignal: 'SIGTERM',
  });
  const closed = Promise.withResolvers<number>();
  child.on('close', (code) => closed.resolve(code ?? 1));
  // It is still ending when an interruption makes an error of it.
  child.on('error', () => undefined);
  return await closed.promise;
}
