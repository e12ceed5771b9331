import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import type { FileReport, TestReport } from './test-report.ts';

/** A vitest reporter that writes what `countTests` reads into the file that `SLUICE_TEST_REPORT` names. */
export default class ReportWriter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errorsOutside: readonly unknown[]): void {
    const report: TestReport = { files: modules.map(reportOf), errorsOutside: errorsOutside.length };
    const { SLUICE_TEST_REPORT } = process.env;
    if (SLUICE_TEST_REPORT) writeFileSync(SLUICE_TEST_REPORT, JSON.stringify(report));
  }
}

function reportOf(module: TestModule): FileReport {
  const tests = [...module.children.allTests()].map((test) => test.result());
  const count = (wanted: string) => tests.filter(({ state }) => state === wanted).length;
  const errors = [
    ...[module, ...module.children.allSuites()].flatMap((suite) => suite.errors()),
    ...tests.flatMap((test) => (test.state === 'failed' ? test.errors : [])),
  ];
  const [passed, failed] = [count('passed'), count('failed')];
  return {
    file: module.relativeModuleId,
    passed,
    failed,
    skipped: tests.length - passed - failed,
    isBroken: !module.ok() && failed === 0,
    isLate: errors.length > 0 && errors.every(({ name }) => name === 'TooLate'),
  };
}
