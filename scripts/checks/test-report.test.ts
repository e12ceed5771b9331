import { expect, test } from 'vitest';
import { countTests, type FileReport, type VitestRun } from './test-report.ts';

const PASSED: FileReport = {
  file: 'one',
  seconds: 1,
  passed: 1,
  failed: 0,
  skipped: 0,
  isBroken: false,
  isLate: false,
  failures: [],
};

function runOf(files: readonly Partial<FileReport>[], given: Partial<VitestRun> & { errorsOutside?: number } = {}) {
  const { errorsOutside = 0, ...run } = given;
  const report = { files: files.map((file) => ({ ...PASSED, ...file })), errorsOutside };
  return { report, exitCode: 0, isSelection: false, ...run };
}

test('passed and failed tests are counted over all files', () => {
  const run = runOf([{ passed: 2 }, { passed: 1, failed: 1 }], { exitCode: 1 });
  expect(countTests(run)).toEqual({ passed: 3, failed: 1, failures: [], faults: [] });
});

test('a file that fails outside its tests is one failed test', () => {
  const run = runOf([{}, { passed: 0, isBroken: true }], { exitCode: 1 });
  expect(countTests(run)).toEqual({ passed: 1, failed: 1, failures: [], faults: [] });
});

test('tests that were not selected are no fault', () => {
  expect(countTests(runOf([{ skipped: 1 }], { isSelection: true }))).toEqual({
    passed: 1,
    failed: 0,
    failures: [],
    faults: [],
  });
});

test.each([
  ['a skipped test', runOf([{ skipped: 1 }])],
  ['an empty run', runOf([])],
  ['an empty run of a selection', runOf([], { isSelection: true })],
  ['an error outside of the tests', runOf([{ failed: 1 }], { errorsOutside: 1, exitCode: 1 })],
  ['a run that failed without a failed test', runOf([{}], { exitCode: 1 })],
  ['a run without a report', runOf([], { report: undefined })],
])('%s is a fault', (_name, run) => {
  expect(countTests(run).faults).toHaveLength(1);
});
