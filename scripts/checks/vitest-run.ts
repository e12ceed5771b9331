import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createTemporaryFolder } from '../temporary-folders.ts';
import { countTests, type TestCounts, type TestReport, type VitestRun } from './test-report.ts';
import { recordSeconds, type TestSeconds } from './test-seconds.ts';

const EXIT_CODE_INTERRUPTED = 130;

export interface RunCounts extends TestCounts {
  /** The seconds of each file, a file that was run twice counting once. */
  readonly seconds: TestSeconds;
  /** The files that were run again because they were late, from the root of the repository. */
  readonly late: readonly string[];
}

/**
 * Runs vitest in a process of its own, with a temporary folder of its own, in memory if possible, and counts its tests. Each
 * file that was late is run once more when all others have ended, alone, and only its second result counts. A file with any
 * other failure is not run again.
 *
 * @param vitestArgs filters and options of the first run alone
 * @param config the configuration of both runs. Default: that of the repository
 */
export async function runVitest(root: string, vitestArgs: readonly string[], config?: string): Promise<RunCounts> {
  const run = (...args: readonly string[]) =>
    reportOfVitest(root, [...(config === undefined ? [] : [`--config=${config}`]), ...args]);
  const first = await run(...vitestArgs);
  const late = (first.report?.files ?? []).filter(({ isLate }) => isLate).map(({ file }) => file);
  if (late.length === 0) return { ...countTests(first), seconds: secondsOf(first), late };
  console.log(`These files were late, and are run once more:\n${late.map((file) => `  ${file}`).join('\n')}`);
  const both = withSecondRun(first, await run('--maxWorkers=1', ...late));
  return { ...countTests(both), seconds: secondsOf(both), late };
}

function secondsOf({ report }: VitestRun): TestSeconds {
  return Object.fromEntries((report?.files ?? []).map(({ file, seconds }) => [file, seconds]));
}

/** The files of the second run take the place of those that were late in the first one. */
function withSecondRun({ report }: VitestRun, again: VitestRun): VitestRun {
  if (!report || !again.report) return again;
  const { files, errorsOutside } = again.report;
  return {
    ...again,
    report: {
      files: [...report.files.filter(({ isLate }) => !isLate), ...files],
      errorsOutside: report.errorsOutside + errorsOutside,
    },
  };
}

async function reportOfVitest(root: string, vitestArgs: readonly string[]): Promise<VitestRun> {
  // Everything temporary of the run is in one folder, so that an interrupted run leaves nothing behind either.
  const tempDir = await createTemporaryFolder();
  const reportFile = join(tempDir, 'report.json');
  let isInterrupted = false;
  try {
    const ours = ['slowest-files.ts', 'report-writer.ts'].map((file) => join(import.meta.dirname, file));
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const options = [...['default', ...ours].map((reporter) => `--reporter=${reporter}`), ...vitestArgs];
    const node = ['--disable-warning=ExperimentalWarning', vitest, 'run', ...options];
    const child = spawn(process.execPath, node, {
      cwd: root,
      env: {
        ...process.env,
        TMPDIR: tempDir,
        NODE_COMPILE_CACHE: join(tempDir, 'compile-cache'),
        SLUICE_TEST_REPORT: reportFile,
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const passOn = (signal: NodeJS.Signals) => {
      isInterrupted = true;
      child.kill(signal);
    };
    process.on('SIGINT', passOn).on('SIGTERM', passOn).on('SIGHUP', passOn);
    process.once('disconnect', () => child.kill());
    process.once('exit', () => child.kill());
    const [code, signal]: (number | string | null)[] = await once(child, 'close');
    const text = await readFile(reportFile, 'utf8').catch(() => undefined);
    const report = text === undefined ? undefined : (JSON.parse(text) as TestReport);
    await recordSeconds(root, report?.files ?? []);
    return {
      report,
      exitCode: typeof code === 'number' ? code : signal ? 128 : 1,
      isSelection: vitestArgs.some((arg) => /^(-t|--testNamePattern)/.test(arg)),
    };
  } finally {
    // Engines of an interrupted run are still ending.
    await rm(tempDir, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
    if (isInterrupted) process.exit(EXIT_CODE_INTERRUPTED);
  }
}
