// A vitest globalSetup: starts real engines for the whole run. Tests get them with inject('kafkaBrokers') and
// inject('clickhouseUrl'). The profile of the ClickHouse account sets everything that our statements depend on to another
// value: what they mean must not depend on it. The engines that a test starts itself have the default profile.
// It also builds the console, which query-api serves.
import { parseTestStackKind, startTestStack } from '@sluice/local-stack/test-stack';
import { CONTRARY_SETTINGS } from '@sluice/shared/clickhouse/testing/contrary-settings';
import type { TestProject } from 'vitest/node';
import { buildConsole } from '../../packages/console/scripts/build.ts';
import { fillCompileCache } from './service.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** `host:port` of every broker. */
    kafkaBrokers: string[];
    /** User `default`, without a password. */
    clickhouseUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { SLUICE_TEST_STACK } = process.env;
  const [stack] = await Promise.all([
    startTestStack({
      kind: parseTestStackKind(SLUICE_TEST_STACK),
      clickhouseProfile: CONTRARY_SETTINGS,
      onProgress: (line) => console.error(line),
    }),
    fillCompileCache(),
    buildConsole(),
  ]);
  project.provide('kafkaBrokers', stack.kafkaBrokers);
  project.provide('clickhouseUrl', stack.clickhouseUrl);
  return () => stack.stop();
}
