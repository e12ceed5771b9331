// npm run keys: makes, lists and revokes API keys. `npm run keys -- --help` tells more.
import { join, resolve } from 'node:path';
import { KeysFileError } from '@sluice/shared/keys/keys-file';
import { ArgumentsError, runKeysCommand, UnknownKey } from './keys/commands.ts';

const root = join(import.meta.dirname, '..');

/** Where the person stands: npm itself goes to the folder of the project. */
const byNpm = process.env['npm_lifecycle_event'] === 'keys' ? process.env['INIT_CWD'] : undefined;
const cwd = byNpm ?? process.cwd();
const keysFile = process.env['API_KEYS_FILE'] || undefined;
const dataDir = resolve(root, process.env['SLUICE_DATA_DIR'] || '.sluice');
const defaultFile = keysFile === undefined ? join(dataDir, 'keys.json') : resolve(cwd, keysFile);

try {
  for (const line of await runKeysCommand(process.argv.slice(2), { cwd, defaultFile, now: () => new Date() })) {
    console.log(line);
  }
} catch (error) {
  if (error instanceof ArgumentsError) {
    console.error(`${error.message}\nnpm run keys -- --help tells how it is used.`);
    process.exitCode = 2;
  } else if (error instanceof UnknownKey || error instanceof KeysFileError) {
    console.error(error instanceof KeysFileError ? `The keys file ${error.message}.` : error.message);
    process.exitCode = 1;
  } else throw error;
}
