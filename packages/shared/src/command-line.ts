import { type ParseArgsConfig, parseArgs } from 'node:util';

/** Arguments that cannot be followed; the message is for the person who gave them. */
export class ArgumentsError extends Error {
  override readonly name = 'ArgumentsError';
}

/**
 * node:util's parseArgs, strict.
 *
 * @throws {ArgumentsError} what it finds at fault
 */
export function parseArguments<Config extends ParseArgsConfig>(config: Config): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new ArgumentsError((error as Error).message, { cause: error });
  }
}

/** Runs a command and gives its exit code: 2 for arguments that cannot be followed, which are told on standard error. */
export async function runCommand(name: string, command: () => Promise<number>): Promise<number> {
  try {
    return await command();
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    console.error(`${error.message}\n${name} --help tells how it is used.`);
    return 2;
  }
}
