import { ArgumentsError } from '@sluice/shared/config/command-line';
import type { Environment } from '../command/command.ts';
import { readSecret } from '../command/local-system.ts';

/**
 * Returns the key from the arguments or the environment, else the development key of npm start.
 *
 * @throws {ArgumentsError} when there is none, or one that no header can carry
 */
export async function findKey(given: string | undefined, env: Environment): Promise<string> {
  const key = given ?? (env['SLUICE_API_KEY'] || env['SLUICE_DEV_KEY'] || (await readSecret(env, 'dev-key')));
  if (!key) throw new ArgumentsError('A key is needed: give --key, set SLUICE_API_KEY, or run npm start once.');
  // Every request with any other key would fail.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new ArgumentsError('The key must be visible ASCII characters, without spaces and line feeds.');
  }
  return key;
}
