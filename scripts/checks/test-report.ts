/** What is used of the report of vitest's json reporter. */
interface JsonReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  /** What is wrong beyond failed tests, one sentence each. */
  readonly faults: readonly string[];
}

/**
 * Counts the tests of a run from the text of vitest's JSON report. A file that fails outside its tests counts as one
 * failed test. Skipped tests, an empty run, a missing report and a run that failed without a failed test are faults.
 *
 * @param exitCode vitest's.
 */
export function countTests(report: string | undefined, exitCode: number): TestCounts {
  if (report === undefined) return { passed: 0, failed: 0, faults: [`vitest ended with ${exitCode} and no report.`] };
  const { testResults } = JSON.parse(report) as JsonReport;
  const statuses = testResults.flatMap(({ assertionResults }) => assertionResults.map(({ status }) => status));
  const passed = statuses.filter((status) => status === 'passed').length;
  const failedTests = statuses.filter((status) => status === 'failed').length;
  const brokenFiles = testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((assertion) => assertion.status === 'failed'),
  );
  const failed = failedTests + brokenFiles.length;
  const neither = statuses.length - passed - failedTests;
  const faults: string[] = [];
  if (neither > 0) faults.push(`${neither} tests were skipped.`);
  if (statuses.length === 0) faults.push('No test was run.');
  if (exitCode !== 0 && failed === 0 && faults.length === 0) faults.push(`vitest ended with exit code ${exitCode}.`);
  return { passed, failed, faults };
}
