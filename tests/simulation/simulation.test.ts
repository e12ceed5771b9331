import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');

/** The same seeds in each run: `npm run simulate` tries new ones. */
const SCHEDULES = 300;

/** A process of its own, since a simulation replaces the clock. */
async function simulate(...args: string[]): Promise<string> {
  const { NODE_ENV: _testing, ...env } = process.env;
  const script = ['--disable-warning=ExperimentalWarning', join(root, 'scripts', 'simulate.ts')];
  const { stdout } = await promisify(execFile)(process.execPath, [...script, ...args], { env });
  return stdout;
}

test(`${SCHEDULES} schedules of faults: nothing is lost, stored twice, invented, or never stored`, async () => {
  const output = await simulate('--only', 'writer', '--seed', '1', '--schedules', String(SCHEDULES));
  console.log(output.trim().split('\n').at(-2));
  expect(output).toContain('Nothing was lost, doubled or invented.');
});

test('two runs of one seed are the same, step for step', async () => {
  const [one, other] = [
    await simulate('--only', 'writer', '--seed', '7', '--trace'),
    await simulate('--only', 'writer', '--seed', '7', '--trace'),
  ];
  expect(one).toContain('FAULT: ');
  expect(other).toBe(one);
});
