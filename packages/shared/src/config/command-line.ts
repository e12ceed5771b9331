import { type ParseArgsConfig, parseArgs } from 'node:util';

/** The arguments of a command are wrong. The message is for the user. */
export class ArgumentsError extends Error {
  override readonly name = 'ArgumentsError';
}

/** Why a command did nothing. The message is for the operator. */
export class Refused extends Error {
  override readonly name = 'Refused';
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

/** Functions that read an argument each, by its name. */
type Readers = Readonly<Record<string, () => unknown>>;

/**
 * Reads several arguments, and returns what was read by the same names.
 *
 * @throws {ArgumentsError} naming the errors of all of them, each in a line
 */
export function readArguments<R extends Readers>(readers: R): { readonly [Name in keyof R]: ReturnType<R[Name]> } {
  const errors: string[] = [];
  const values = Object.entries(readers).map(([name, read]) => {
    try {
      return [name, read()];
    } catch (error) {
      if (!(error instanceof ArgumentsError)) throw error;
      errors.push(error.message);
      return [name, undefined];
    }
  });
  if (errors.length > 0) throw new ArgumentsError(errors.join('\n'));
  return Object.fromEntries(values);
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
