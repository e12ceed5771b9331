import { expect, test } from 'vitest';
import { countTests } from './test-report.ts';

function report(...files: { status: string; tests: string[] }[]): string {
  const testResults = files.map(({ status, tests }, index) => ({
    name: `file-${index}`,
    status,
    assertionResults: tests.map((testStatus) => ({ status: testStatus })),
  }));
  return JSON.stringify({ testResults });
}

test('passed and failed tests are counted over all files', () => {
  const text = report(
    { status: 'passed', tests: ['passed', 'passed'] },
    { status: 'failed', tests: ['failed', 'passed'] },
  );
  expect(countTests(text, 1)).toEqual({ passed: 3, failed: 1, faults: [] });
});

test('a file that fails outside its tests is one failed test', () => {
  const text = report({ status: 'passed', tests: ['passed'] }, { status: 'failed', tests: [] });
  expect(countTests(text, 1)).toEqual({ passed: 1, failed: 1, faults: [] });
});

test.each([
  ['a skipped test', report({ status: 'passed', tests: ['passed', 'skipped'] }), 0],
  ['a test to be written', report({ status: 'passed', tests: ['passed', 'todo'] }), 0],
  ['an empty run', report(), 0],
  ['a run that failed without a failed test', report({ status: 'passed', tests: ['passed'] }), 1],
  ['a run without a report', undefined, 1],
])('%s is a fault', (_name, text, exitCode) => {
  expect(countTests(text, exitCode).faults).toHaveLength(1);
});
