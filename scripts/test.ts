// npm test: the checks beside every test; its last line is "N passed, N failed". Arguments go to vitest
// (npm test -- services/writer -t "a name") and leave the checks out.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runChecks } from './checks/checks.ts';
import { countTests, type TestCounts } from './checks/test-report.ts';

const root = join(import.meta.dirname, '..');
const vitestArgs = process.argv.slice(2);

const [checks, tests] = await Promise.all([
  vitestArgs.length > 0 ? { passed: 0, failed: 0 } : runChecks(root),
  runVitest(),
]);
for (const fault of tests.faults) console.log(fault);
const passed = checks.passed + tests.passed;
const failed = checks.failed + tests.failed + tests.faults.length;
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);

async function runVitest(): Promise<TestCounts> {
  // Everything temporary of the run is in one folder, so that an interrupted run leaves nothing behind either.
  const tempDir = await mkdtemp(join(tmpdir(), 'sluice-tests-'));
  const reportFile = join(tempDir, 'report.json');
  try {
    const slowestFiles = join(import.meta.dirname, 'checks', 'slowest-files.ts');
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
