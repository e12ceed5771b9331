import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { KAFKA_VERSION } from '@sluice/local-stack/kafka-libs';

const FOLDER = join(import.meta.dirname, 'results');

/** The printed tables of a benchmark, by their titles. */
export type Report = Record<string, Readonly<Record<string, string>>>;

/**
 * Writes the report to `bench/results`, with the machine, the versions and the commit.
 *
 * @param clickhouse the version of ClickHouse
 */
export async function saveReport(
  name: string,
  options: Readonly<Record<string, unknown>>,
  report: Report,
  clickhouse: string,
): Promise<void> {
  const commit = execFileSync('git', ['describe', '--always', '--dirty'], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
  });
  const contents = {
    measuredAt: new Date().toISOString(),
    commit: commit.trim(),
    machine: {
      cpu: cpus()[0]?.model,
      cores: availableParallelism(),
      memoryGiB: Math.round(totalmem() / 2 ** 30),
    },
    versions: { node: process.version, clickhouse, kafka: KAFKA_VERSION },
    options,
    report,
  };
  await mkdir(FOLDER, { recursive: true });
  await writeFile(join(FOLDER, `${name}.json`), `${JSON.stringify(contents, undefined, 2)}\n`);
  console.log(`The figures are in bench/results/${name}.json.`);
}
