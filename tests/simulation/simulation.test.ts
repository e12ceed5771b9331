import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { KINDS } from './kinds.ts';

const root = join(import.meta.dirname, '..', '..');

/** How many schedules are run. The same seeds in each run: `npm run simulate` tries new ones. */
const SCHEDULES: Readonly<Record<string, number>> = { writer: 300, ingest: 60 };

/** A process of its own, since a simulation replaces the clock. */
async function simulate(...args: string[]): Promise<string> {
  const { NODE_ENV: _testing, ...env } = process.env;
  const script = ['--disable-warning=ExperimentalWarning', join(root, 'scripts', 'simulate.ts')];
  const { stdout } = await promisify(execFile)(process.execPath, [...script, ...args], { env });
  return stdout;
}

describe.each(KINDS)('$name', ({ name }) => {
  test('schedules of faults: nothing is lost, doubled, invented, or never done', async () => {
    const output = await simulate('--only', name, '--seed', '1', '--schedules', String(SCHEDULES[name]));
    console.log(output.trim().split('\n').at(-2));
    expect(output).toContain('Nothing was lost, doubled or invented.');
  });

  test('two runs of one seed are the same, step for step', async () => {
    const run = () => simulate('--only', name, '--seed', '7', '--trace');
    const [one, other] = [await run(), await run()];
    expect(one).toContain('FAULT: ');
    expect(other).toBe(one);
  });
});
