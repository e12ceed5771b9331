import { spawn } from 'node:child_process';

/** Sends SIGCONT when its standard input ends, also because the process at the other end was killed. */
const GUARD = 'read -r line; kill -CONT "$0"';

/**
 * Sends SIGSTOP to a process. The returned function sends SIGCONT, and so does the end of this process, however it comes:
 * a frozen process would not notice it.
 */
export function freeze(pid: number): () => void {
  // In a session of its own, so that Ctrl-C does not end it.
  const guard = spawn('sh', ['-c', GUARD, String(pid)], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  guard.unref();
  process.kill(pid, 'SIGSTOP');
  return () => void guard.stdin.end();
}
