import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ArgumentsError } from '@sluice/shared/command-line';

const root = join(import.meta.dirname, '../..');

/**
 * Returns the key from the arguments or the environment, else the development key of npm start.
 *
 * @throws {ArgumentsError} when there is none, or one that no header can carry
 */
export async function findKey(given: string | undefined): Promise<string> {
  const key = given ?? (process.env['SLUICE_API_KEY'] || process.env['SLUICE_DEV_KEY'] || (await developmentKey()));
  if (!key) throw new ArgumentsError('A key is needed: pass --key, set SLUICE_API_KEY, or run npm start once.');
  // Every request with any other key would fail.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new ArgumentsError('The key must be visible ASCII characters, without spaces and line feeds.');
  }
  return key;
}

async function developmentKey(): Promise<string> {
  const dataDir = resolve(root, process.env['SLUICE_DATA_DIR'] || '.sluice');
  const kept = await readFile(join(dataDir, 'dev-key'), 'utf8').catch(() => '');
  return kept.trim();
}
