import { javaOf, pythonOf } from '../installation.ts';
import { type ClientOutcome, runProgram } from '../run-client.ts';
import { type PosthogClient, posthogKeyOf } from './clients.ts';
import { runInPage } from './in-browser.ts';
import { type PosthogStep, STEPS } from './steps.ts';

export interface PosthogRun {
  /** The address of ingest-api. */
  readonly url: string;
  /** Resolves when ingest-api has all events: a page does not say so itself. */
  readonly received: () => Promise<void>;
  /** Default: {@link STEPS}. */
  readonly steps?: readonly PosthogStep[];
  /** Between two steps, in milliseconds. Default 0. */
  readonly paceMs?: number;
  /** Responses are lost, and pages may report it. Default: everything that fails is an error. */
  readonly withFaults?: boolean;
}

/** Runs a client of PostHog in a process of its own, until it has sent all events or has given up. */
export async function runPosthog(
  client: PosthogClient,
  { steps = STEPS, paceMs = 0, ...run }: PosthogRun,
): Promise<ClientOutcome> {
  const { runsIn } = client;
  const key = posthogKeyOf(client);
  if (runsIn.platform === 'browser') return { ...(await runInPage(runsIn, { ...run, key, steps, paceMs })), log: '' };
  const { url } = run;
  const given = { url, key, calls: steps, paceMs, module: 'posthog' };
  switch (runsIn.platform) {
    case 'node':
      return await runProgram([process.execPath], 'posthog-node.ts', { ...given, module: runsIn.module });
    case 'python':
      return await runProgram([pythonOf(runsIn.environment)], 'posthog_client.py', given);
    case 'java':
      return await runProgram(javaOf(runsIn.jars), 'PosthogServer.java', given);
    case 'recorded':
      throw new Error(`No test can run ${client.name}.`);
  }
}
