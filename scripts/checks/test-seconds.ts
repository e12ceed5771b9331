import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FileReport } from './test-report.ts';

/** Seconds of test files, by their paths from the root of the repository. */
export type TestSeconds = Readonly<Record<string, number>>;

/** As measured on two quiet cores. Copied from {@link MEASURED_FILE} after a run there. */
const KEPT_FILE = join('tests', 'seconds.json');

/** As measured on this machine, by the last run of each file. */
const MEASURED_FILE = join('.cache', 'test-seconds.json');

/** Fixtures of the tests of the runs themselves are no tests. */
const TEST_FILE = /\.test\.ts$/;

/** Returns what `tests/seconds.json` has. */
export async function readSeconds(root: string): Promise<TestSeconds> {
  return await readJson(join(root, KEPT_FILE));
}

/** Adds the seconds of a run to `.cache/test-seconds.json`, in the place of earlier ones of the same files. */
export async function recordSeconds(root: string, files: readonly FileReport[]): Promise<void> {
  const file = join(root, MEASURED_FILE);
  const tests = files.filter((one) => TEST_FILE.test(one.file));
  const measured = Object.fromEntries(tests.map((one) => [one.file, one.seconds]));
  const all = Object.entries({ ...(await readJson(file)), ...measured });
  const sorted = all.toSorted(([one], [other]) => (one < other ? -1 : 1));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
}

async function readJson(file: string): Promise<TestSeconds> {
  const text = await readFile(file, 'utf8').catch(() => '{}');
  return JSON.parse(text) as TestSeconds;
}
