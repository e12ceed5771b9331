import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterEach, beforeEach, test } from 'vitest';
import { freeze } from './freeze.ts';

let sleeper: ChildProcess;

beforeEach(() => {
  sleeper = spawn('sleep', ['600']);
});
afterEach(() => sleeper.kill('SIGKILL'));

const isFrozen = () =>
  execFileSync('ps', ['-o', 'state=', '-p', String(sleeper.pid)], { encoding: 'utf8' }).startsWith('T');

test('a frozen process goes on when it is thawed', async () => {
  const thaw = freeze(sleeper.pid as number);
  await eventually(isFrozen).toBe(true);
  thaw();
  await eventually(isFrozen).toBe(false);
});

test('a frozen process goes on when the process that froze it is killed', async () => {
  const script = `import { freeze } from '${new URL('freeze.ts', import.meta.url)}'; freeze(${sleeper.pid}); setInterval(() => {}, 1_000);`;
  const freezer = spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: 'ignore' });
  await eventually(isFrozen).toBe(true);
  freezer.kill('SIGKILL');
  await eventually(isFrozen).toBe(false);
});
