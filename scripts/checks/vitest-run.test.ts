import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

interface FixtureRun {
  readonly counts: unknown;
  /** How often each file was run. */
  readonly runs: Readonly<Record<string, number>>;
  /** What the whole run printed. */
  readonly output: string;
}

/** Runs fixtures as `npm test` runs its files. In a process of its own, since vitest prints much. */
async function runFixtures(...names: string[]): Promise<FixtureRun> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-fixtures-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const fixtures = join(import.meta.dirname, 'fixtures');
  const { NODE_ENV: _testing, VITEST: _vitest, ...env } = process.env;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(fixtures, 'run.ts'), ...names],
    { env: { ...env, SLUICE_FIXTURE_RUNS: folder } },
  );
  const counted = await Promise.all(
    (await readdir(folder)).map(async (name) => [name, (await readFile(join(folder, name))).byteLength] as const),
  );
  const lines = stdout.trim().split('\n');
  return { counts: JSON.parse(lines.at(-1) ?? ''), runs: Object.fromEntries(counted), output: stdout };
}

const path = (name: string) => `scripts/checks/fixtures/${name}.fixture.ts`;

test('a file that was late is run once more, and its second result counts; no other file is', async () => {
  const { counts, runs, output } = await runFixtures('passing', 'late-once');
  expect(counts).toMatchObject({ passed: 3, failed: 0, failures: [], faults: [], late: [path('late-once')] });
  expect(runs).toEqual({ passing: 1, 'late-once': 2 });
  expect(output).toContain(`late, and are run once more:\n  ${path('late-once')}\n`);
});

test('a file that is late a second time fails, and is not run a third time', async () => {
  const { counts, runs } = await runFixtures('late-twice');
  expect(counts).toMatchObject({ passed: 0, failed: 1, late: [path('late-twice')] });
  expect(runs).toEqual({ 'late-twice': 2 });
});

test('a file with a wrong result fails, and is not run again, also when it was late as well', async () => {
  const { counts, runs } = await runFixtures('late-and-wrong', 'wrong');
  expect(counts).toMatchObject({ passed: 0, failed: 3, late: [] });
  expect(counts).toMatchObject({
    failures: expect.arrayContaining([expect.stringMatching(`^${path('wrong')} > [^:]+: .+`)]),
  });
  expect(runs).toEqual({ 'late-and-wrong': 1, wrong: 1 });
});
