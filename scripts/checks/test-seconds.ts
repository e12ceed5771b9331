import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FileReport } from './test-report.ts';

/** Seconds that each test file took when it ran last, by its path from the root of the repository. */
export type TestSeconds = Readonly<Record<string, number>>;

/** What a run on this machine measured; `tests/seconds.json` has what was measured on two quiet cores. */
const MEASURED_FILE = join('.cache', 'test-seconds.json');

/** Adds the seconds of a run to `.cache/test-seconds.json`, in the place of earlier ones of the same files. */
export async function recordSeconds(root: string, files: readonly FileReport[]): Promise<void> {
  const file = join(root, MEASURED_FILE);
  const before = (await readJson(file)) ?? {};
  const measured = Object.fromEntries(files.map(({ file, seconds }) => [file, seconds]));
  const all = Object.entries({ ...before, ...measured }).toSorted(([one], [other]) => (one < other ? -1 : 1));
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
}

async function readJson(file: string): Promise<TestSeconds | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as TestSeconds);
}
