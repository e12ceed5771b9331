import { OtherWorkMeter } from '../measure/other-work.ts';
import type { Benchmark, Choices } from './benchmark.ts';
import { sectionOf, writePage } from './page.ts';
import { readResults, writeResult } from './result.ts';

/**
 * Runs a benchmark, writes its result and the page, and prints its section of the page.
 *
 * @param all those of the page
 * @throws {VoidRun} when something was lost or refused; then nothing is written
 */
export async function runBenchmark(
  benchmark: Benchmark,
  size: Readonly<Record<string, number>>,
  all: readonly Benchmark[],
  choices: Choices,
): Promise<void> {
  const { name } = benchmark;
  const meter = await OtherWorkMeter.start();
  const figures = await benchmark.measure(size, choices);
  await writeResult({ name, otherWork: await meter.read(), size, figures });
  await writePage(all);
  console.log(sectionOf(benchmark, (await readResults()).get(name)));
}
