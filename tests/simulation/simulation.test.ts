import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { FAILED_SEEDS } from './failed-seeds.ts';
import { KINDS } from './kinds.ts';

const root = join(import.meta.dirname, '..', '..');
const kinds = KINDS.map(({ name }) => name);

/** How long schedules with new seeds are run, in seconds. */
const SECONDS = 60;

/** Runs `npm run simulate`, and returns what it prints. A process of its own, since a simulation replaces the clock. */
async function simulate(...args: string[]): Promise<string> {
  const { NODE_ENV: _testing, ...env } = process.env;
  const script = ['--disable-warning=ExperimentalWarning', join(root, 'scripts', 'simulate.ts')];
  const run = promisify(execFile)(process.execPath, [...script, ...args], { env, maxBuffer: Number.POSITIVE_INFINITY });
  // It exits with 1 when something is wrong, which it prints.
  const { stdout } = await run.catch((error: { stdout: string }) => error);
  return stdout;
}

test('a minute of schedules with new seeds: nothing is lost, stored twice, invented, or never stored', async () => {
  const output = await simulate('--seconds', String(SECONDS));
  console.log(output);
  expect(output).toContain('Nothing was lost, doubled or invented.');
});

test.each(FAILED_SEEDS)('a schedule that failed once: $kind, seed $seed: $found', async ({ kind, seed }) => {
  const output = await simulate('--only', kind, '--seed', String(seed));
  expect(output).not.toContain('WRONG');
  expect(output).toContain(`seed ${seed}`);
});

test.each(kinds)('two runs of one seed are the same, step for step: %s', async (kind) => {
  const args = ['--only', kind, '--seed', '7', '--trace'];
  const [one, other] = await Promise.all([simulate(...args), simulate(...args)]);
  expect(one).toContain('FAULT: ');
  expect(other).toBe(one);
});
