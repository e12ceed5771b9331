// A vitest globalSetup: real engines for the whole run. Tests read them with inject('kafkaBrokers') and
// inject('clickhouseUrl'). The account's profile sets everything that our statements depend on to another value: what
// they mean must not depend on it. The engines that a test starts itself have the usual profile.
import { parseTestStackKind, startTestStack } from '@sluice/local-stack/test-stack';
import { CONTRARY_SETTINGS } from '@sluice/shared/clickhouse/testing/contrary-settings';
import type { TestProject } from 'vitest/node';

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
  const stack = await startTestStack({
    kind: parseTestStackKind(SLUICE_TEST_STACK),
    clickhouseProfile: CONTRARY_SETTINGS,
    onProgress: (line) => console.error(line),
  });
  project.provide('kafkaBrokers', stack.kafkaBrokers);
  project.provide('clickhouseUrl', stack.clickhouseUrl);
  return () => stack.stop();
}
