// npm run dashboards: writes the dashboards for Grafana. `npm run dashboards -- --help` tells more.
import { writeFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { parseArguments, runCommand } from '@sluice/shared/config/command-line';
import { dashboardFiles } from './dashboards/files.ts';

const HELP = `Usage: npm run dashboards

Writes deploy/grafana/*.json from scripts/dashboards. A test says when they are stale.

Exit codes: 0 done; 2 the arguments are wrong.`;

process.exitCode = await runCommand('npm run dashboards --', main);

async function main(): Promise<number> {
  const { values } = parseArguments({ options: { help: { type: 'boolean', short: 'h' } } });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  for (const { path, text } of dashboardFiles()) {
    await writeFile(path, text);
    console.log(relative('.', path));
  }
  return 0;
}
