// npm run hostile: one tenant at every limit of the API, beside another one. `npm run hostile -- --help` tells more.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArguments, runCommand } from '@sluice/shared/command-line';
import { withLimits } from '../tests/hostile/limits-document.ts';

const HELP = `Usage: npm run hostile -- --write-limits

  --write-limits   write the table of limits into docs/api.md
  --help           this text`;

process.exit(await runCommand('npm run hostile --', main));

async function main(): Promise<number> {
  const { values } = parseArguments({
    args: process.argv.slice(2),
    options: { 'write-limits': { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  if (!values['write-limits']) {
    console.log(HELP);
    return 0;
  }
  const path = join(import.meta.dirname, '..', 'docs', 'api.md');
  await writeFile(path, withLimits(await readFile(path, 'utf8')));
  return 0;
}
