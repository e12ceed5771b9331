import { basename, relative } from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';

/** The arguments of a command are wrong. The message is for the user. */
export class ArgumentsError extends Error {
  override readonly name = 'ArgumentsError';
}

/**
 * Parses arguments with node:util's parseArgs.
 *
 * @throws {ArgumentsError} instead of its TypeError
 */
export function parseArguments<Config extends ParseArgsConfig>(config: Config): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new ArgumentsError((error as Error).message, { cause: error });
  }
}

/** Runs a command and returns its exit code: 2 when its arguments are wrong, after it has said so on standard error. */
export async function runCommand(name: string, command: () => Promise<number>): Promise<number> {
  try {
    return await command();
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    console.error(`${error.message}\n${name} --help shows its usage.`);
    return 2;
  }
}

/**
 * What a person types to run this command, for help texts: `npm run <script> --` in a checkout, and
 * `node <path of main.ts>` in a container, which has no npm.
 *
 * @param script the name in package.json.
 * @param program the file that runs; default this process's.
 */
export function calledAs(script: string, program: string = process.argv[1] ?? ''): string {
  return basename(program) === 'main.ts' ? `node ${relative(process.cwd(), program)}` : `npm run ${script} --`;
}
