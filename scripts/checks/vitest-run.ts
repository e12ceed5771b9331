import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countTests, type TestCounts } from './test-report.ts';

/** Runs vitest in a process of its own, with a temporary folder of its own, and counts its tests. */
export async function runVitest(root: string, vitestArgs: readonly string[]): Promise<TestCounts> {
  // Everything temporary of the run is in one folder, so that an interrupted run leaves nothing behind either.
  const tempDir = await mkdtemp(join(tmpdir(), 'sluice-tests-'));
  const reportFile = join(tempDir, 'report.json');
  try {
    const slowestFiles = join(import.meta.dirname, 'slowest-files.ts');
    const reporters = ['default', 'json', slowestFiles].map((reporter) => `--reporter=${reporter}`);
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const options = [...reporters, `--outputFile.json=${reportFile}`, ...vitestArgs];
    const node = ['--disable-warning=ExperimentalWarning', vitest, 'run', ...options];
    const child = spawn(process.execPath, node, {
      cwd: root,
      env: { ...process.env, TMPDIR: tempDir, NODE_COMPILE_CACHE: join(tempDir, 'compile-cache') },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const passOn = (signal: NodeJS.Signals) => child.kill(signal);
    process.on('SIGINT', passOn).on('SIGTERM', passOn).on('SIGHUP', passOn);
    process.once('disconnect', () => child.kill());
    // The checks may fail to start.
    process.once('exit', () => child.kill());
    const [code, signal]: (number | string | null)[] = await once(child, 'close');
    const report = await readFile(reportFile, 'utf8').catch(() => undefined);
    return countTests(report, typeof code === 'number' ? code : signal ? 128 : 1);
  } finally {
    // Engines of an interrupted run are still ending.
    await rm(tempDir, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
  }
}
