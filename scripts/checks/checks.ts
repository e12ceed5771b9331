import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { styleText } from 'node:util';
import type { TestCounts } from './test-report.ts';

/** A tool's verdict over the whole repository. */
interface Check {
  readonly name: string;
  /** A program of node_modules/.bin and its arguments. */
  readonly command: readonly [string, ...string[]];
}

const CHECKS: readonly Check[] = [
  { name: 'types (tsc)', command: ['tsc', '--noEmit', '-p', '.'] },
  { name: 'types of the console (tsc)', command: ['tsc', '--noEmit', '-p', 'packages/console'] },
  { name: 'lint and format (biome)', command: ['biome', 'ci', '--colors=off', '--error-on-warnings', '.'] },
  { name: 'imports and rooms (dependency-cruiser)', command: ['node', 'scripts/rooms.ts'] },
];

/** Runs every check, prints one line each, and a failing check's whole output before it. Each check counts as a test. */
export async function runChecks(root: string): Promise<TestCounts> {
  const outcomes = await Promise.all(
    CHECKS.map(async (check) => ({ name: check.name, passed: await runCheck(check, root) })),
  );
  const failures = outcomes.filter(({ passed }) => !passed).map(({ name }) => name);
  return { passed: outcomes.length - failures.length, failed: failures.length, failures, faults: [] };
}

async function runCheck({ name, command: [program, ...args] }: Check, root: string): Promise<boolean> {
  const startedAt = performance.now();
  const child = spawn(join(root, 'node_modules', '.bin', program), args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  const passed = code === 0;
  if (!passed) process.stdout.write(out + errors);
  const mark = passed ? styleText('green', 'ok') : styleText('red', 'FAILED');
  console.log(`${mark} ${name}, ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  return passed;
}
