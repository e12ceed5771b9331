import { spawn } from 'node:child_process';

/** Sends SIGCONT once its standard input ends, also because whoever holds the other end was killed. */
const GUARD = 'read -r line; kill -CONT "$0"';

/**
 * Stops a process with SIGSTOP and gives what lets it go on. It goes on as well when this process ends, however that
 * happens: frozen, it would not notice.
 */
export function freeze(pid: number): () => void {
  // In a session of its own, so that Ctrl-C does not end it.
  const guard = spawn('sh', ['-c', GUARD, String(pid)], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  guard.unref();
  process.kill(pid, 'SIGSTOP');
  return () => void guard.stdin.end();
}
