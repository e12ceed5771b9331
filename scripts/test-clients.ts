// npm run test:clients: runs clients of others, as they are published, against the whole pipeline. It installs them first.
// --record writes their requests to tests/clients/recorded. Other arguments go to vitest (-t "a name").
import { join } from 'node:path';
import { runVitest } from './checks/vitest-run.ts';

const args = process.argv.slice(2);
const record = args.includes('--record');
if (record) process.env['SLUICE_RECORD_CLIENTS'] = 'true';

const root = join(import.meta.dirname, '..');
const { passed, failed, faults } = await runVitest(root, [
  '--config=tests/clients/vitest.config.ts',
  ...args.filter((arg) => arg !== '--record'),
]);
for (const fault of faults) console.log(fault);
console.log(`${passed} passed, ${failed + faults.length} failed`);
process.exit(failed + faults.length > 0 ? 1 : 0);
