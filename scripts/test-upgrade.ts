// npm run test:upgrade: upgrades the version before this one to this one and back, one process after the other, under
// load. --from COMMIT takes another version. Other arguments go to vitest.
import { join } from 'node:path';
import { printCounts } from './checks/test-report.ts';
import { runVitest } from './checks/vitest-run.ts';

const [first, commit, ...others] = process.argv.slice(2);
const isFrom = first === '--from';
if (isFrom && commit === undefined) {
  console.error('--from needs a commit.');
  process.exit(2);
}
if (isFrom) process.env['SLUICE_UPGRADE_FROM'] = commit;

const root = join(import.meta.dirname, '..');
const vitestArgs = isFrom ? others : process.argv.slice(2);
process.exit(printCounts([await runVitest(root, ['--config=tests/upgrade/vitest.config.ts', ...vitestArgs])]));
