import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** Running engines for the tests to use instead of starting their own. */
export interface Engines {
  readonly kafkaBrokers: readonly string[];
  readonly clickhouseUrl: string;
}

export interface TestRun {
  readonly passed: boolean;
  /** The first test or file that failed, or what went wrong outside of the tests; undefined if all passed. */
  readonly failed: string | undefined;
  readonly seconds: number;
  readonly output: string;
}

/** A mutation that makes a service hang counts as killed. */
const TIMEOUT_MS = 15 * 60_000;

/** Runs test files in a copy of the working tree and stops at the first failure. */
export async function runTests(
  path: string,
  files: readonly string[],
  engines: Engines | undefined,
  signal: AbortSignal,
): Promise<TestRun> {
  const startedAt = performance.now();
  const tempDir = await mkdtemp(join(tmpdir(), 'sluice-mutate-'));
  const reportFile = join(tempDir, 'report.json');
  try {
    const vitest = join('node_modules', 'vitest', 'vitest.mjs');
    const options = ['--config=scripts/mutate/vitest.config.ts', '--reporter=json', `--outputFile.json=${reportFile}`];
    const node = ['--disable-warning=ExperimentalWarning', vitest, 'run', ...options, ...files];
    const child = spawn(process.execPath, node, {
      cwd: path,
      env: {
        ...process.env,
        TMPDIR: tempDir,
        SLUICE_MUTATE_ENGINES: engines ? JSON.stringify(engines) : '',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      killSignal: 'SIGTERM',
    });
    child.on('error', () => undefined);
    const closed = once(child, 'close').catch(() => [null]);
    const [out, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
    signal.throwIfAborted();
    const report = await readFile(reportFile, 'utf8').catch(() => undefined);
    return {
      passed: code === 0,
      failed: code === 0 ? undefined : firstFailure(report),
      seconds: (performance.now() - startedAt) / 1_000,
      output: out + errors,
    };
  } finally {
    await rm(tempDir, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  }
}

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

function firstFailure(report: string | undefined): string {
  if (report === undefined) return 'the tests did not end';
  const { testResults } = JSON.parse(report) as Report;
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const test = tests.find(({ status }) => status === 'failed');
  const file = testResults.find(({ status }) => status === 'failed');
  return (
    test?.fullName ?? (file ? `all of ${file.name.split('/').slice(-2).join('/')}` : 'an error outside of the tests')
  );
}
