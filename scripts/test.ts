// npm test: the checks beside every test; its last line is "N passed, N failed". Arguments go to vitest
// (npm test -- services/writer -t "a name") and leave the checks out.
import { join } from 'node:path';
import { runChecks } from './checks/checks.ts';
import { runVitest } from './checks/vitest-run.ts';

const root = join(import.meta.dirname, '..');
const vitestArgs = process.argv.slice(2);

const [checks, tests] = await Promise.all([
  vitestArgs.length > 0 ? { passed: 0, failed: 0 } : runChecks(root),
  runVitest(root, vitestArgs),
]);
for (const fault of tests.faults) console.log(fault);
const passed = checks.passed + tests.passed;
const failed = checks.failed + tests.failed + tests.faults.length;
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
