import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Where strace is unpacked when the system has none. */
const CACHE = join(import.meta.dirname, '../../.cache/strace');

/**
 * Finds strace on the PATH, or else unpacks Debian's package into `.cache` without installing it.
 *
 * @throws {Error} when there is none, with how to get it
 */
export async function findStrace(): Promise<string> {
  if (await runs('strace')) return 'strace';
  const unpacked = join(CACHE, 'usr/bin/strace');
  if (!existsSync(unpacked)) await unpackDebianPackage().catch(() => undefined);
  if (await runs(unpacked)) return unpacked;
  throw new Error('This test needs strace to kill ClickHouse in a system call: install it (apt install strace)');
}

async function runs(strace: string): Promise<boolean> {
  return await run(strace, ['-V']).then(
    () => true,
    () => false,
  );
}

async function unpackDebianPackage(): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  await run('apt-get', ['download', 'strace'], { cwd: CACHE });
  const file = (await readdir(CACHE)).find((name) => name.endsWith('.deb')) ?? '';
  await run('dpkg-deb', ['--extract', file, CACHE], { cwd: CACHE });
}

const CANNOT_ATTACH =
  'strace cannot attach to a process: run as root, or see that `sysctl kernel.yama.ptrace_scope` is 0; ' +
  'in a container, its security profile has to allow ptrace.';

export interface Trap extends AsyncDisposable {}

/**
 * Kills a process with SIGKILL when one of its threads makes one of these system calls for the `nth` time from now on:
 * strace counts for each thread alone.
 *
 * @param calls names of system calls; those that this processor does not have are left out
 */
export async function killAtCall(pid: number, calls: readonly string[], nth: number): Promise<Trap> {
  const strace = await findStrace();
  const set = calls.map((call) => `?${call}`).join(',');
  const inject = `inject=${set}:signal=SIGKILL:when=${nth}`;
  const child = spawn(strace, ['-f', '-p', String(pid), '-e', `trace=${set}`, '-e', inject, '-o', '/dev/null'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await attached(child);
  return {
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      // Asked to end it may wait for threads that never end; without it they go on, or end if they were killed.
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** Waits until strace reports that it has attached to all threads. */
async function attached(child: ChildProcess): Promise<void> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stderr as NodeJS.ReadableStream })) {
    lines.push(line);
    if (/ attached/.test(line)) {
      child.stderr?.resume();
      return;
    }
  }
  throw new Error(`${CANNOT_ATTACH}\n${lines.join('\n')}`);
}
