// npm run rooms: how the code is divided. `npm run rooms -- --help` tells more.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArguments, runCommand } from '@sluice/shared/config/command-line';
import { cruise, format, type ICruiseResult } from 'dependency-cruiser';
import extractConfig from 'dependency-cruiser/config-utl/extract-depcruise-config';
import { countRooms } from './checks/room-counts.ts';

const HELP = `Usage: npm run rooms -- [--write]

Checks who imports whom by the rules of .dependency-cruiser.mjs, counts files, rooms and imports, and compares what must not
grow with scripts/checks/rooms.json.

A room is a folder of a src, or a file beside these folders. An arrow is a pair of rooms of which one imports the other. It
points up where rooms import one another, so that no order has all arrows down. A floor is one step of the longest chain of
arrows down. A fragment is a file of at most 60 lines that one neighbor in its folder imports; scripts/checks/room-counts.ts
has a reason for each.

  --write   lower the figures of rooms.json to those of now
  --help    this text

Exit codes: 0 done; 1 a rule is broken, or a figure has grown; 2 the arguments are wrong.`;

const ROOT = join(import.meta.dirname, '..');
const LIMITS = join(ROOT, 'scripts', 'checks', 'rooms.json');

process.exit(await runCommand('npm run rooms --', main));

async function main(): Promise<number> {
  const { values } = parseArguments({
    args: process.argv.slice(2),
    options: { write: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const imports = await readImports();
  const { table, unexplained, limited } = countRooms(imports.modules, ROOT);
  for (const [name, figure] of table) console.log(`${name.padEnd(64)}${figure}`);
  const limits: Record<string, number> = JSON.parse(await readFile(LIMITS, 'utf8'));
  const grown = Object.entries(limited).filter(([name, count]) => count > (limits[name] ?? 0));
  for (const [name, count] of grown)
    console.log(`${name}: ${count}, and ${limits[name] ?? 0} are the most there may be.`);
  if (unexplained.length > 0) console.log(unexplained.join('\n'));
  if (imports.summary.violations.length > 0) console.log((await format(imports, { outputType: 'err' })).output);
  if (values.write) {
    const lowered = Object.entries(limited).map(([name, count]) => [name, Math.min(count, limits[name] ?? count)]);
    await writeFile(LIMITS, `${JSON.stringify(Object.fromEntries(lowered), null, 2)}\n`);
  }
  return grown.length > 0 || imports.summary.violations.length > 0 ? 1 : 0;
}

/** Returns all files of the repository with what they import, and which rules of `.dependency-cruiser.mjs` they break. */
async function readImports(): Promise<ICruiseResult> {
  const { options, forbidden = [] } = await extractConfig(join(ROOT, '.dependency-cruiser.mjs'));
  const { output } = await cruise(['services', 'packages', 'scripts', 'tests', 'bench'], {
    ...options,
    baseDir: ROOT,
    ruleSet: { forbidden },
    validate: true,
  });
  return output as ICruiseResult;
}
