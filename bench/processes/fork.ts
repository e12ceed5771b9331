import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Forked {
  readonly process: ChildProcess;
  readonly pid: number;
  /** Its first message. */
  readonly message: unknown;
}

/** Starts a module of this folder as a process and waits for its first message. The module ends when its channel closes. */
export async function forkReady(module: string, args: readonly string[] = []): Promise<Forked> {
  const child = fork(fileURLToPath(new URL(module, import.meta.url)), args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [message] = await once(child, 'message');
  return { process: child, pid: child.pid ?? -1, message };
}
