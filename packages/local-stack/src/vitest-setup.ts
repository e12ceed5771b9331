// A vitest globalSetup: real engines for the whole run. Tests read them with inject('kafkaBrokers') and
// inject('clickhouseUrl').
import type { TestProject } from 'vitest/node';
import { parseTestStackKind, startTestStack } from './test-stack.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** `host:port` of every broker. */
    kafkaBrokers: string[];
    /** User `default`, without a password. */
    clickhouseUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // biome-ignore lint/style/noProcessEnv: vitest calls this as a main program, with nothing passed in
  const { SLUICE_TEST_STACK } = process.env;
  const stack = await startTestStack({
    kind: parseTestStackKind(SLUICE_TEST_STACK),
    onProgress: (line) => console.error(line),
  });
  project.provide('kafkaBrokers', stack.kafkaBrokers);
  project.provide('clickhouseUrl', stack.clickhouseUrl);
  return () => stack.stop();
}
