// A vitest globalSetup of every tier that needs engines: the first one of a run starts them, for all. Tests get them with
// inject('kafkaBrokers') and inject('clickhouseUrl'). The profile of the ClickHouse account sets everything that our
// statements depend on to another value: what they mean must not depend on it. The engines that a test starts itself have
// the default profile. It also builds the console, which query-api serves, and bundles the programs.
import { rm } from 'node:fs/promises';
import { parseTestStackKind, startTestStack } from '@sluice/local-stack/test-stack';
import { CONTRARY_SETTINGS } from '@sluice/shared/clickhouse/testing/contrary-settings';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import type { TestProject, Vitest } from 'vitest/node';
import { buildConsole } from '../../packages/console/scripts/build.ts';
import { bundlePrograms } from './bundle-programs.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** `host:port` of every broker. */
    kafkaBrokers: string[];
    /** The administrator is `default` without a password; the services have the accounts of `test-accounts.ts`. */
    clickhouseUrl: string;
  }
}

/** vitest loads this file once for each tier, and a process has one run. */
const shared = globalThis as { sluiceTestEngines?: Promise<void> };

export default async function setup({ vitest }: TestProject): Promise<void> {
  shared.sluiceTestEngines ??= start(vitest);
  await shared.sluiceTestEngines;
}

async function start(vitest: Vitest): Promise<void> {
  const [stack, bundles] = await Promise.all([
    startTestStack({
      kind: parseTestStackKind(process.env['SLUICE_TEST_STACK']),
      clickhouseProfile: CONTRARY_SETTINGS,
      clickhouseAccounts: TEST_ACCOUNTS,
      onProgress: (line) => console.error(line),
    }),
    bundlePrograms(),
    buildConsole(),
  ]);
  vitest.onClose(() => stack.stop());
  vitest.onClose(() => rm(bundles, { recursive: true, force: true }));
  vitest.provide('kafkaBrokers', stack.kafkaBrokers);
  vitest.provide('clickhouseUrl', stack.clickhouseUrl);
}
