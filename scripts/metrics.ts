// npm run metrics: the metrics of all services. `npm run metrics -- --help` tells more.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArguments, runCommand } from '@sluice/shared/config/command-line';
import { listMetrics } from '../tests/kit/metrics/metric-list.ts';
import { withMetrics } from '../tests/kit/metrics/metrics-document.ts';

const HELP = `Usage: npm run metrics -- [--write]

Prints the metrics that the services declare, as JSON: name, type, labels, help, and the services that have them.

  --write   write them into docs/operate/metrics.md instead, each with what to do about it
  --help    this text

Exit codes: 0 done; 2 the arguments are wrong.`;

const DOCUMENT = join(import.meta.dirname, '..', 'docs', 'operate', 'metrics.md');

process.exit(await runCommand('npm run metrics --', main));

async function main(): Promise<number> {
  const { values } = parseArguments({
    args: process.argv.slice(2),
    options: { write: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) console.log(HELP);
  else if (values.write) await writeFile(DOCUMENT, withMetrics(await readFile(DOCUMENT, 'utf8')));
  else console.log(JSON.stringify(listMetrics(), null, 2));
  return 0;
}
