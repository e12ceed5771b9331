// npm run test:faults: what takes long on real engines, and the suite of `npm run test:clients`; its last line is
// "N passed, N failed". Arguments go to vitest (npm run test:faults -- kill) and leave the other clients out.
import { join } from 'node:path';
import { printCounts } from './checks/test-report.ts';
import { runVitestTwiceIfLate } from './checks/vitest-run.ts';

const root = join(import.meta.dirname, '..');
const vitestArgs = process.argv.slice(2);

const suites = [await runVitestTwiceIfLate(root, 'tests/faults/vitest.config.ts', vitestArgs)];
if (vitestArgs.length === 0) suites.push(await runVitestTwiceIfLate(root, 'tests/clients/vitest.config.ts', []));
for (const file of suites.flatMap(({ late }) => late)) console.log(`late: ${file}`);
process.exit(printCounts(suites));
