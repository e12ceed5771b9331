import { expect, test } from 'vitest';
import { BENCHMARKS } from '../benchmarks.ts';
import type { Benchmark, Figure } from './benchmark.ts';
import { pageOf, picturesOf, readPage, readPicture, sectionOf } from './page.ts';
import { type BenchResult, readResults } from './result.ts';

test('docs/design/performance.md is what npm run bench -- report makes of bench/results', async () => {
  expect(await readPage()).toBe(pageOf(BENCHMARKS, await readResults()));
});

test('the pictures beside it are what npm run bench -- report draws', async () => {
  const pictures = picturesOf(BENCHMARKS, await readResults());
  for (const [file, content] of pictures) expect(await readPicture(file)).toBe(content);
});

test('every file of bench/results is the result of the benchmark that it names', async () => {
  const names = BENCHMARKS.map((benchmark) => benchmark.name);
  for (const [file, { name }] of await readResults()) {
    expect(name).toBe(file);
    expect(names).toContain(name);
  }
});

const BENCHMARK: Benchmark = {
  ...{ name: 'walk', title: 'Walking', method: 'On foot.', size: { rounds: 7 } },
  measure: async () => [],
};

function resultOf(figures: readonly Figure[]): BenchResult {
  return {
    ...{ name: 'walk', date: '2026-03-01T12:34:56.789Z', commit: 'abc1234', size: { rounds: 7 }, figures },
    machine: { cpu: 'CPU', cores: 2, memoryGiB: 24, node: 'v26.1.0' },
    otherWork: { otherProcesses: 0.25, stolen: 0 },
  };
}

test('a section says with which size, when and where it was measured, and beside what', () => {
  const section = sectionOf(BENCHMARK, resultOf([]));
  expect(section).toContain('`walk` with 7 rounds, 2026-03-01 12:34 UTC, commit abc1234');
  expect(section).toContain('CPU, 2 cores, 24 GiB, Node.js 26.1.0');
  expect(section).toContain('other processes used 0.25 cores meanwhile');
});

test('the section of a benchmark without a result says so', () => {
  expect(sectionOf(BENCHMARK, undefined)).toContain('_Not measured yet: `npm run bench -- walk`._');
});

test.each([
  [3, { atMost: 3 }, '3 ms (≤ 3)'],
  [3.01, { atMost: 3 }, '**3.01 ms** (≤ 3)'],
  [3, { atLeast: 3 }, '3 ms (≥ 3)'],
  [2.99, { atLeast: 3 }, '**2.99 ms** (≥ 3)'],
])('%s with the bar %o is shown as %s', (value, bar, cell) => {
  const section = sectionOf(BENCHMARK, resultOf([{ row: 'home', column: 'time', unit: 'ms', value, bar }]));
  expect(section).toContain(`| ${cell} |`);
  expect(section).toContain(`${cell.startsWith('*') ? 0 : 1} of 1 bars are met`);
});

test('figures stand in the rows and columns that they name', () => {
  const figures = [
    { row: 'home', column: 'time', unit: 'ms', value: 1_234.5 },
    { row: 'home', column: 'steps', unit: '', value: 12.34 },
    { row: 'back', column: 'steps', unit: '', value: 1.234 },
  ];
  expect(sectionOf(BENCHMARK, resultOf(figures))).toContain(
    [
      '|      | time     | steps |', //
      '| ---- | -------- | ----- |',
      '| home | 1,235 ms | 12.3  |',
      '| back |          | 1.23  |',
    ].join('\n'),
  );
});

test('a figure without a value says why there is none', () => {
  const absent = { row: 'home', column: 'time', unit: 'ms', value: 0, absent: 'no shoes' };
  expect(sectionOf(BENCHMARK, resultOf([absent]))).toContain('| no shoes |');
});

test('figures of several tables stand under the headings of these', () => {
  const figures = [
    { table: 'On foot', row: 'home', column: 'time', unit: 'ms', value: 2 },
    { table: 'By train', row: 'home', column: 'time', unit: 'ms', value: 1 },
  ];
  const section = sectionOf(BENCHMARK, resultOf(figures));
  expect(section).toMatch(/### On foot\n\n.*2 ms.*### By train\n\n.*1 ms/s);
});
