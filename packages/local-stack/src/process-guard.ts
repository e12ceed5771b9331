// The shell replaces itself with the command, so that the command has its process id. A background copy of the shell
// reads the pipe from the parent: a line means that the command has ended, the end of the pipe that the parent has ended.
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

/** The line that tells a guard that its command has ended, so that it sends no signal. */
export const GUARD_RELEASE = 'ended\n';

/**
 * Wraps a command so that it ends with its parent, for programs that ignore the end of their standard input (Java).
 * Spawn the result with a pipe as standard input. When that pipe ends, also because the parent was killed, the command
 * gets SIGTERM, and SIGKILL ten seconds later. The id of the spawned process is the command's.
 */
export function guardCommand(command: string, args: readonly string[]): { command: string; args: string[] } {
  return { command: 'sh', args: ['-c', GUARD, 'sh', command, ...args] };
}
