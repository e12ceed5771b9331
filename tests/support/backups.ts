import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { Pipeline } from './pipeline.ts';

export const CLI_MAIN = join(import.meta.dirname, '../../packages/cli/src/main.ts');

export interface CommandEnd {
  readonly code: number;
  /** Standard output and standard error. */
  readonly output: string;
}

/** The account of a restore: those of the services may not replace a database. */
export const RESTORE_ACCOUNT = { CLICKHOUSE_MIGRATE_USER: 'default', CLICKHOUSE_MIGRATE_PASSWORD: '' } as const;

/** Runs `sluice` as an operator does, as a process of its own with the environment of a pipeline's services. */
export function sluice(
  pipeline: Pick<Pipeline, 'environment'>,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandEnd> {
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env['PATH'], ...pipeline.environment, ...env } };
    execFile(process.execPath, [CLI_MAIN, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: `${stdout}${stderr}` });
    });
  });
}
