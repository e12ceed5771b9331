// npm run keys: creates, lists and revokes API keys. `npm run keys -- --help` shows its usage.
import { join, resolve } from 'node:path';
import { keysMain } from '@sluice/keys-command/keys-command';

const root = join(import.meta.dirname, '..');

/** The folder from which the command was called: npm itself changes to the folder of the project. */
const byNpm = process.env['npm_lifecycle_event'] === 'keys' ? process.env['INIT_CWD'] : undefined;
const cwd = byNpm ?? process.cwd();
const keysFile = process.env['API_KEYS_FILE'] || undefined;
const dataDir = resolve(root, process.env['SLUICE_DATA_DIR'] || '.sluice');
const defaultFile = keysFile === undefined ? join(dataDir, 'keys.json') : resolve(cwd, keysFile);

process.exitCode = await keysMain(process.argv.slice(2), { cwd, defaultFile, now: () => new Date() });
