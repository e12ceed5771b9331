import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const IMPORTER = fileURLToPath(new URL('../../scripts/import.ts', import.meta.url));

export interface ImportRun {
  readonly code: number | null;
  /** What it printed to both streams. */
  readonly output: string;
}

/** Runs the importer with these arguments, as `npm run import` does. */
export async function runImporter(args: readonly string[], key: string): Promise<ImportRun> {
  const child = spawn(process.execPath, [IMPORTER, ...args], {
    env: { PATH: process.env['PATH'] ?? '', SLUICE_API_KEY: key },
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
