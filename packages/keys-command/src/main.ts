// The keys command without npm, as in a container. The keys file is API_KEYS_FILE or --file.
import { keysMain } from './keys-command.ts';

const defaultFile = process.env['API_KEYS_FILE'] || 'api-keys.json';
process.exitCode = await keysMain(process.argv.slice(2), { cwd: process.cwd(), defaultFile, now: () => new Date() });
