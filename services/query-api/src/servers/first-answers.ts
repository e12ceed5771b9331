import { atMost } from '@sluice/shared/retry';
import type { PolledServer } from './polled-server.ts';

/** How long a request waits for the first answer of each server, in milliseconds. */
const ANSWER_MS_MAX = 3_000;

/**
 * Waits for servers that have not answered yet, after a start or a change of the file. Nobody is preferred only because it has
 * answered first. One that does not answer is not waited for long, unless nothing is known of its mirrors either.
 */
export async function firstAnswers(ranges: readonly (readonly PolledServer[])[]): Promise<void> {
  const unknown = ranges.flat().filter((server) => !isKnown(server));
  if (unknown.length === 0) return;
  const answers = Promise.allSettled(unknown.map((server) => server.state()));
  await atMost(
    ANSWER_MS_MAX,
    answers.then(() => undefined),
  );
  const silent = ranges.filter((mirrors) => !mirrors.some(isKnown));
  await Promise.all(
    silent.map((mirrors) => Promise.race(mirrors.map((server) => server.state().catch(() => undefined)))),
  );
}

function isKnown({ lastState, failure }: PolledServer): boolean {
  return lastState !== undefined || failure !== undefined;
}
