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
