import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { FileReport, TestReport } from '../checks/test-report.ts';
import { createTemporaryFolder } from '../temporary-folders.ts';

/** A fault that makes tests hang counts as found. */
const TIMEOUT_MS = 15 * 60_000;

export interface TestRun {
  /** The files that failed, each with the names of its failed tests and their errors. */
  readonly failed: readonly Pick<FileReport, 'file' | 'failures'>[];
  readonly seconds: number;
}

export interface TestRunOptions {
  /** Whether the run ends with the first test that fails. */
  readonly endsWithFirst: boolean;
  readonly signal: AbortSignal;
}

/**
 * Runs test files in a copy of the working tree, in one run of vitest.
 *
 * @throws {Error} when vitest cannot run them
 */
export async function runTestFiles(
  path: string,
  files: readonly string[],
  { endsWithFirst, signal }: TestRunOptions,
): Promise<TestRun> {
  const startedAt = performance.now();
  const secondsNow = () => (performance.now() - startedAt) / 1_000;
  const tempDir = await createTemporaryFolder();
  const reportFile = join(tempDir, 'report.json');
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const vitest = ['--disable-warning=ExperimentalWarning', join('node_modules', 'vitest', 'vitest.mjs'), 'run'];
    const reporter = `--reporter=${join(path, 'scripts', 'checks', 'report-writer.ts')}`;
    const args = [...vitest, reporter, ...(endsWithFirst ? ['--bail=1'] : []), ...files];
    const child = spawn(process.execPath, args, {
      cwd: path,
      env: { ...process.env, TMPDIR: tempDir, SLUICE_TEST_REPORT: reportFile },
      stdio: ['ignore', 'ignore', 'pipe'],
      signal: AbortSignal.any([signal, timeout]),
      killSignal: 'SIGTERM',
    });
    child.on('error', () => undefined);
    const closed = once(child, 'close').catch(() => undefined);
    const [errors] = await Promise.all([text(child.stderr), closed]);
    signal.throwIfAborted();
    if (timeout.aborted)
      return { failed: files.map((file) => ({ file, failures: ['a test does not end'] })), seconds: secondsNow() };
    const written = await readFile(reportFile, 'utf8').catch(() => '{"files":[]}');
    const report = JSON.parse(written) as TestReport;
    if (report.files.length === 0)
      throw new Error(`vitest has run no test of ${files.join(', ')}: ${errors.slice(-1_000)}`);
    return { failed: report.files.filter(({ failed, isBroken }) => failed > 0 || isBroken), seconds: secondsNow() };
  } finally {
    // Engines of an interrupted run are still ending.
    await rm(tempDir, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  }
}
