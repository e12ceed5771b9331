// npm test: the checks, then every test but those of `npm run test:faults`; its last line is "N passed, N failed".
// Arguments go to vitest (npm test -- services/writer -t "a name") and leave the checks out.
import { join } from 'node:path';
import { runChecks } from './checks/checks.ts';
import { printCounts } from './checks/test-report.ts';
import { runVitest } from './checks/vitest-run.ts';

const root = join(import.meta.dirname, '..');
const vitestArgs = process.argv.slice(2);

const checks = vitestArgs.length > 0 ? [] : [await runChecks(root)];
process.exit(printCounts([...checks, await runVitest(root, vitestArgs)]));
