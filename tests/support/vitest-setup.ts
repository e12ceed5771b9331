// A vitest globalSetup: starts real engines for the whole run. Tests get them with inject('kafkaBrokers') and
// inject('clickhouseUrl'). The profile of the ClickHouse account sets everything that our statements depend on to another
// value: what they mean must not depend on it. The engines that a test starts itself have the default profile.
// It also builds the console, which query-api serves.
import { randomInt } from 'node:crypto';
import { parseTestStackKind, startTestStack } from '@sluice/local-stack/test-stack';
import { CONTRARY_SETTINGS } from '@sluice/shared/clickhouse/testing/contrary-settings';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import type { TestProject } from 'vitest/node';
import { buildConsole } from '../../packages/console/scripts/build.ts';
import { fillCompileCache } from './service.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** `host:port` of every broker. */
    kafkaBrokers: string[];
    /** The administrator is `default` without a password; the services have the accounts of `test-accounts.ts`. */
    clickhouseUrl: string;
    /** Decides everything that is random in tests. */
    seed: number;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { SLUICE_TEST_STACK, SLUICE_TEST_SEED } = process.env;
  const seed = parseSeed(SLUICE_TEST_SEED);
  console.error(`SLUICE_TEST_SEED=${seed} makes the same random choices as this run`);
  const [stack] = await Promise.all([
    startTestStack({
      kind: parseTestStackKind(SLUICE_TEST_STACK),
      clickhouseProfile: CONTRARY_SETTINGS,
      clickhouseAccounts: TEST_ACCOUNTS,
      onProgress: (line) => console.error(line),
    }),
    fillCompileCache(),
    buildConsole(),
  ]);
  project.provide('seed', seed);
  project.provide('kafkaBrokers', stack.kafkaBrokers);
  project.provide('clickhouseUrl', stack.clickhouseUrl);
  return () => stack.stop();
}

/** @throws Error on anything but a whole number that fast-check takes for a seed */
function parseSeed(value: string | undefined): number {
  const seed = value ? Number(value) : randomInt(2 ** 31);
  if ((seed | 0) !== seed) throw new Error(`SLUICE_TEST_SEED is "${value}"; use a whole number of 32 bits`);
  return seed;
}
