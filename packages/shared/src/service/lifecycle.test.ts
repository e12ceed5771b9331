import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';

const FIXTURE = fileURLToPath(new URL('../testing/lifecycle-fixture.ts', import.meta.url));
let kill: (() => void) | undefined;

afterEach(() => kill?.());

/** Runs a service of two components. The second one takes `stopMs` to stop. */
async function run(options: { stopMs?: number; failing?: boolean; chatty?: boolean } = {}) {
  const child = spawn(process.execPath, [FIXTURE, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] });
  kill = () => child.kill('SIGKILL');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const exit = once(child, 'exit').then(([code]) => code as number);
  if (!options.failing) while (!output.includes('second started')) await once(child.stdout, 'data');
  return { child, exit, steps: () => output.split('\n').filter((line) => line !== '' && !line.startsWith('{')) };
}

describe('a service', () => {
  test('starts its components in order and stops them in reverse on SIGTERM', async () => {
    const { child, exit, steps } = await run();
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
    expect(steps()).toEqual(['first started', 'second started', 'second stopped', 'first stopped']);
  });

  test('stops when standard input ends, so that it never outlives its parent', async () => {
    const { child, exit } = await run();
    child.stdin.end();
    expect(await exit).toBe(0);
  });

  test('exits at once on a second signal', async () => {
    const { child, exit, steps } = await run({ stopMs: 60_000 });
    child.kill('SIGTERM');
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect(await exit).toBe(130);
    expect(steps()).not.toContain('second stopped');
  });

  test('gives up stopping after its deadline', async () => {
    const { child, exit } = await run({ stopMs: 60_000 });
    child.kill('SIGINT');
    expect(await exit).toBe(1);
  });

  test('exits though nobody reads the last lines of its log', async () => {
    const { child, exit } = await run({ stopMs: 300, chatty: true });
    child.stdin.end();
    await once(child.stdout, 'data');
    child.stdout.destroy();
    expect(await exit).toBe(0);
  });

  test('stops what it had started when a component fails to start', async () => {
    const { exit, steps } = await run({ failing: true });
    expect(await exit).toBe(1);
    expect(steps()).toContain('first stopped');
  });
});
