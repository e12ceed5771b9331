import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';

export interface CommandRun {
  readonly code: number | null;
  /** What it printed to both streams. */
  readonly output: string;
}

/** Runs the importer with these arguments, as `sluice import` does. */
export async function runImporter(args: readonly string[], key: string): Promise<CommandRun> {
  return await runSluice('import', args, key);
}

/** Runs the exporter with these arguments, as `sluice export` does. */
export async function runExporter(args: readonly string[], key: string): Promise<CommandRun> {
  return await runSluice('export', args, key);
}

async function runSluice(command: string, args: readonly string[], key: string): Promise<CommandRun> {
  const child = spawn(process.execPath, [programFile('sluice'), command, ...args], {
    env: { ...inherited(), SLUICE_API_KEY: key },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}
