import { join } from 'node:path';

/** The folder of this repository. */
export const THIS_CHECKOUT = join(import.meta.dirname, '../../../..');

/** The main files of what a test starts as a process: the services, and `sluice`, the commands for operators. */
export const MAIN_FILES = {
  'ingest-api': 'services/ingest-api/src/main.ts',
  writer: 'services/writer/src/main.ts',
  'query-api': 'services/query-api/src/main.ts',
  'trench-api': 'services/trench-api/src/main.ts',
  sluice: 'packages/cli/src/main.ts',
} as const;

export type ProgramName = keyof typeof MAIN_FILES;

/** The variable with the folder of a run's bundles. Without it, as in unit tests and benchmarks, programs run from their sources. */
export const BUNDLES = 'SLUICE_TEST_BUNDLES';

/**
 * Returns the file that Node.js runs a program from.
 *
 * @param options `checkout`: the folder of the repository, such as one of another version. `env`: what the program gets. Only
 * programs of this checkout are bundled, and only those without `NODE_OPTIONS`: tracing, which is loaded by it, knows a service by
 * the path of its file
 */
export function programFile(name: ProgramName, { checkout = THIS_CHECKOUT, env = {} }: ProgramOptions = {}): string {
  const bundles = process.env[BUNDLES];
  const isBundled = bundles !== undefined && checkout === THIS_CHECKOUT && env['NODE_OPTIONS'] === undefined;
  return isBundled ? join(bundles, `${name}.js`) : join(checkout, MAIN_FILES[name]);
}

interface ProgramOptions {
  readonly checkout?: string;
  readonly env?: Readonly<Record<string, string>>;
}
