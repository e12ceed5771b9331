import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { systemErrorCode } from '../errors.ts';

const PARENT = new URL('./parent.ts', import.meta.url).pathname;

/** Starts processes from a parent process, kills the parent with SIGKILL, and returns the ids of the processes. */
export async function orphan(what: 'sleep' | 'kafka' | 'clickhouse', dataDir: string): Promise<number[]> {
  const parent = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PARENT, what, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(parent, 'exit');
  const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string];
  parent.kill('SIGKILL');
  await closed;
  return JSON.parse(line);
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if (systemErrorCode(error) === 'ESRCH') return false;
    throw error;
  }
}
