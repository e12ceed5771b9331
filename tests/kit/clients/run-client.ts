import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runInBrowser } from './browser.ts';
import { STRANGER, type TestCall } from './calls.ts';
import { keyOf, type ThirdPartyClient } from './clients.ts';
import { javaOf, NPM_FOLDER, pythonOf } from './installation.ts';
import { encodeInput, type Program, type ProgramOutcome } from './programs/program.ts';

const run = promisify(execFile);

/** So long that it only ends a client that hangs. */
const RUN_MS_MAX = 240_000;

export interface ClientRun {
  /** The address of ingest-api. */
  readonly url: string;
  /** Resolves when ingest-api has all calls: needed for a page that is left. */
  readonly received?: () => Promise<void>;
  /** Default: those of the client. */
  readonly calls?: readonly TestCall[];
  /** Between two calls of a client that is not in a browser. Default 0. */
  readonly paceMs?: number;
}

export interface ClientOutcome extends ProgramOutcome {
  /** What the process wrote to its standard error. */
  readonly log: string;
}

/** Runs a client in a process of its own. Makes the calls, and resolves when the client has sent all or has given up. */
export async function runClient(
  client: ThirdPartyClient,
  { url, received = async () => undefined, calls = client.calls, paceMs = 0 }: ClientRun,
): Promise<ClientOutcome> {
  const { runsIn } = client;
  const key = keyOf(client);
  if (runsIn.platform === 'browser') {
    return { ...(await runInBrowser(runsIn, { url, key, calls, anonymousId: STRANGER }, received)), log: '' };
  }
  if (runsIn.platform === 'recorded') throw new Error(`No test can run ${client.name}.`);
  const [command, program] =
    runsIn.platform === 'node'
      ? [[process.execPath], runsIn.program]
      : runsIn.platform === 'java'
        ? [javaOf(runsIn.jars), 'JavaClient.java']
        : [[pythonOf(runsIn.environment)], 'python_client.py'];
  return await runProgram(command, program, { url, key, calls, paceMs, module: runsIn.module });
}

/** Runs a program of `programs` in a process of its own. */
export async function runProgram(
  [interpreter = '', ...options]: readonly string[],
  program: string,
  given: Omit<Program<unknown>, 'folder'>,
): Promise<ClientOutcome> {
  const input = encodeInput({ ...given, folder: NPM_FOLDER });
  const path = join(import.meta.dirname, 'programs', program);
  // Nothing else of the environment: a proxy of the machine must not come between.
  // Java reads its argument in the encoding of the locale.
  const env = { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8' };
  const { stdout, stderr } = await run(interpreter, [...options, path, input], { timeout: RUN_MS_MAX, env });
  const outcome = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as ProgramOutcome;
  return { ...outcome, log: stderr };
}
