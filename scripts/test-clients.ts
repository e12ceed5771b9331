// npm run test:clients: runs clients of others, as they are published, against the whole pipeline. It installs them first.
// --record writes their requests to tests/clients/recorded. Other arguments go to vitest (-t "a name").
import { join } from 'node:path';
import { printCounts } from './checks/test-report.ts';
import { runVitest } from './checks/vitest-run.ts';

const args = process.argv.slice(2);
const record = args.includes('--record');
if (record) process.env['SLUICE_RECORD_CLIENTS'] = 'true';

const root = join(import.meta.dirname, '..');
const tests = await runVitest(root, [
  '--config=tests/clients/vitest.config.ts',
  ...args.filter((arg) => arg !== '--record'),
]);
process.exit(printCounts([tests]));
