import { join } from 'node:path';
import { runChecks } from './checks.ts';
import { printCounts } from './test-report.ts';
import { describeTiers } from './tier-sums.ts';
import { type TestCommand, TIERS_OF } from './tiers.ts';
import { runVitest } from './vitest-run.ts';

const ROOT = join(import.meta.dirname, '..', '..');

const HELP = `Usage: npm test -- [FILTER ...] [-t NAME] [OPTION ...]
       npm run test:build -- ...
       npm run test:night -- ...

npm test checks types, lint and format, and runs the tests of the tiers ${listOf('test')}.
test:build runs those of ${listOf('build')}: what each change has to pass.
test:night runs those of ${listOf('night')}: large, long or old.
tests/README.md says what the tiers are.

  FILTER             run the files of these tiers whose paths contain it, and leave the checks out
  -t NAME            run the tests whose names match
  --project TIER     run one tier
  --maxWorkers N     run N files at a time (default: one more than there are cores)
  --help             this text

All other options are those of vitest. The last line is "N passed, N failed".`;

function listOf(command: TestCommand): string {
  return TIERS_OF[command].join(', ');
}

/**
 * Runs the tiers of a command, after the checks of `npm run check` where nothing is selected, and ends the process. Arguments
 * of the process go to vitest. A file that was late is run once more at the end.
 */
export async function runTests(command: TestCommand): Promise<never> {
  // npm takes the "--" away that begins the arguments; vitest would ignore every filter after it.
  const args = process.argv.slice(process.argv[2] === '--' ? 3 : 2);
  if (args.includes('--help')) {
    console.log(HELP);
    process.exit(0);
  }
  const checks = args.length > 0 || command === 'night' ? [] : [await runChecks(ROOT)];
  const chosen = args.some((arg) => arg.startsWith('--project')) ? [] : TIERS_OF[command];
  const tests = await runVitest(ROOT, [...chosen.map((tier) => `--project=${tier}`), ...args]);
  console.log(`The seconds of each tier, and its budget:\n${describeTiers(tests.seconds)}`);
  for (const file of tests.late) console.log(`late: ${file}`);
  process.exit(printCounts([...checks, tests]));
}
