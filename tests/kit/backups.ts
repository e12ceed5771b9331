import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import type { Pipeline } from './pipeline.ts';

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
    const options = { env: { ...inherited(), ...pipeline.environment, ...env } };
    execFile(process.execPath, [programFile('sluice'), ...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: `${stdout}${stderr}` });
    });
  });
}

/** As {@link sluice}, as a process that may be killed. */
export function startSluice({ environment }: Pick<Pipeline, 'environment'>, args: readonly string[]) {
  const child = spawn(process.execPath, [programFile('sluice'), ...args], {
    env: { ...inherited(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  const ended = once(child, 'close').then(([code]): CommandEnd => ({ code: Number(code), output }));
  return { child, ended };
}
