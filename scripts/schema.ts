// npm run schema: the tables after all migrations. `npm run schema -- --help` tells more.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArguments, runCommand } from '@sluice/shared/config/command-line';
import { readSchema } from '../tests/kit/current-schema.ts';
import { ownClickHouse } from '../tests/kit/engines.ts';

const HELP = `Usage: npm run schema -- [--write]

Applies all migrations to an empty database of a ClickHouse of its own, and prints the tables.

  --write   write them into docs/design/schema.sql instead
  --help    this text

Exit codes: 0 done; 2 the arguments are wrong.`;

const DOCUMENT = join(import.meta.dirname, '..', 'docs', 'design', 'schema.sql');

process.exitCode = await runCommand('npm run schema --', main);

async function main(): Promise<number> {
  const { values } = parseArguments({
    args: process.argv.slice(2),
    options: { write: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const schema = await currentSchema();
  if (values.write) await writeFile(DOCUMENT, schema);
  else process.stdout.write(schema);
  return 0;
}

async function currentSchema(): Promise<string> {
  await using clickhouse = await ownClickHouse();
  return await readSchema(clickhouse.url);
}
