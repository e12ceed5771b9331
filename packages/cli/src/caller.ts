import type { Environment } from './command.ts';
import type { CommandName } from './commands.ts';

/** How a person ran a command. */
export interface Caller {
  /** What they typed before the arguments: `npm run import --` or `sluice import`. */
  readonly name: string;
  /** The folder in which they typed it. */
  readonly cwd: string;
}

/** Returns how a command of this process was run. npm runs scripts in the folder of the project, and says so. */
export function callerOf(command: CommandName, env: Environment, cwd: string = process.cwd()): Caller {
  if (env['npm_lifecycle_event'] !== command) return { name: `sluice ${command}`, cwd };
  return { name: `npm run ${command} --`, cwd: env['INIT_CWD'] ?? cwd };
}
