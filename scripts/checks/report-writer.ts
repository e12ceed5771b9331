import { writeFileSync } from 'node:fs';
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';
import type { FileReport, TestReport } from './test-report.ts';

/** How many characters of an error the report has. */
const ERROR_CHARACTERS = 1_000;

/** A vitest reporter that writes what `countTests` reads into the file that `SLUICE_TEST_REPORT` names. */
export default class ReportWriter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errorsOutside: readonly unknown[]): void {
    const report: TestReport = { files: modules.map(reportOf), errorsOutside: errorsOutside.length };
    const { SLUICE_TEST_REPORT } = process.env;
    if (SLUICE_TEST_REPORT) writeFileSync(SLUICE_TEST_REPORT, JSON.stringify(report));
  }
}

function reportOf(module: TestModule): FileReport {
  const tests = [...module.children.allTests()];
  const count = (wanted: string) => tests.filter((test) => test.result().state === wanted).length;
  const failed = [module, ...module.children.allSuites(), ...tests]
    .map((entity) => ({ name: nameOf(entity), errors: errorsOf(entity) }))
    .filter(({ errors }) => errors.length > 0);
  const errors = failed.flatMap((one) => one.errors);
  const [passed, failedTests] = [count('passed'), count('failed')];
  return {
    file: module.relativeModuleId,
    seconds: secondsOf(module),
    passed,
    failed: failedTests,
    skipped: tests.length - passed - failedTests,
    isBroken: !module.ok() && failedTests === 0,
    isLate: errors.length > 0 && errors.every(({ name }) => name === 'TooLate'),
    failures: failed.map((one) => `${one.name}: ${one.errors[0]?.message.slice(0, ERROR_CHARACTERS)}`),
  };
}

function secondsOf(module: TestModule): number {
  const { prepareDuration, environmentSetupDuration, setupDuration, collectDuration, duration } = module.diagnostic();
  const ms = prepareDuration + environmentSetupDuration + setupDuration + collectDuration + duration;
  return Math.round(ms / 100) / 10;
}

function nameOf(entity: TestModule | TestSuite | TestCase): string {
  return entity.type === 'module' ? 'outside of its tests' : entity.fullName;
}

function errorsOf(entity: TestModule | TestSuite | TestCase): ReturnType<TestSuite['errors']> {
  if (entity.type !== 'test') return entity.errors();
  const result = entity.result();
  return result.state === 'failed' ? [...result.errors] : [];
}
