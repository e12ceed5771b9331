// The shell becomes the command, so that its process id is the command's own. A background copy of the shell waits on
// the pipe from the parent: a line means that the command has ended, an end without one that the parent is gone.
const GUARD = `
exec 3<&0
(
  if read -r line <&3; then exit 0; fi
  kill -TERM $$ || exit 0
  waited=0
  while [ $waited -lt 10 ]; do sleep 1; kill -0 $$ || exit 0; waited=$((waited + 1)); done
  kill -KILL $$
) >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
`;

/** The line that tells a guard that its command has ended, so that it leaves without a signal. */
export const GUARD_RELEASE = 'ended\n';

/**
 * A command that cannot outlive its parent, for programs that do not notice when their standard input ends (Java).
 * Spawn what is returned with a piped stdin: once that pipe ends, also because the parent was killed with SIGKILL, the
 * command gets SIGTERM, and SIGKILL ten seconds later. The spawned process id is the command's own.
 */
export function guardCommand(command: string, args: readonly string[]): { command: string; args: string[] } {
  return { command: 'sh', args: ['-c', GUARD, 'sh', command, ...args] };
}
