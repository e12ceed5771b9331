/** What vitest says about one test file. */
export interface FileReport {
  /** From the root of the repository. */
  readonly file: string;
  /** Wall time of the file in a worker: its imports, hooks and tests. */
  readonly seconds: number;
  readonly passed: number;
  readonly failed: number;
  /** Tests that were not run, whatever the reason. */
  readonly skipped: number;
  /** It failed outside of its tests. */
  readonly isBroken: boolean;
  /** It failed, and only because something that a test waited for did not happen in time (`TooLate`). */
  readonly isLate: boolean;
  /** The name of each failed test, and of what failed outside of them, with the beginning of its first error. */
  readonly failures: readonly string[];
}

/** What vitest says about a run. */
export interface TestReport {
  readonly files: readonly FileReport[];
  /** How many errors happened that belong to no file. */
  readonly errorsOutside: number;
}

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  /** What failed, with the file. */
  readonly failures: readonly string[];
  /** What is wrong beyond failed tests, one sentence each. */
  readonly faults: readonly string[];
}

/** How a run of vitest ended. */
export interface VitestRun {
  /** Undefined when vitest did not write one. */
  readonly report: TestReport | undefined;
  readonly exitCode: number;
  /** Only tests with certain names were wanted (`-t`): the others are skipped. */
  readonly isSelection: boolean;
}

/**
 * Counts the tests of a run. A file that fails outside its tests counts as one failed test. Skipped tests, an empty run,
 * errors outside of the files, a missing report and a run that failed without a failed test are faults.
 */
export function countTests({ report, exitCode, isSelection }: VitestRun): TestCounts {
  if (report === undefined)
    return { passed: 0, failed: 0, failures: [], faults: [`vitest ended with ${exitCode} and no report.`] };
  const { files, errorsOutside } = report;
  const sum = (count: (file: FileReport) => number) => files.reduce((total, file) => total + count(file), 0);
  const passed = sum((file) => file.passed);
  const failed = sum((file) => (file.isBroken ? 1 : file.failed));
  const skipped = sum((file) => file.skipped);
  const failures = files.flatMap(({ file, failures }) => failures.map((failure) => `${file} > ${failure}`));
  const faults: string[] = [];
  if (skipped > 0 && !isSelection) faults.push(`${skipped} tests were skipped.`);
  if (passed + failed + skipped === 0) faults.push('No test was run.');
  if (errorsOutside > 0) faults.push(`${errorsOutside} errors happened outside of the tests.`);
  if (exitCode !== 0 && failed === 0 && faults.length === 0) faults.push(`vitest ended with exit code ${exitCode}.`);
  return { passed, failed, failures, faults };
}

/**
 * Prints what failed, where a log that is cut off still has it, and, as the last line, "N passed, N failed" of all parts of a
 * command. Returns its exit code.
 */
export function printCounts(parts: readonly TestCounts[]): number {
  const faults = parts.flatMap((part) => part.faults);
  for (const failure of parts.flatMap((part) => part.failures)) console.log(`failed: ${failure}`);
  for (const fault of faults) console.log(fault);
  const passed = parts.reduce((sum, part) => sum + part.passed, 0);
  const failed = parts.reduce((sum, part) => sum + part.failed, 0) + faults.length;
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}
