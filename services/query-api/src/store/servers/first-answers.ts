import { atMost } from '@sluice/shared/base/retry';
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

/**
 * Returns whether any of some servers answers a poll in time, also one that was given up: a busy server may have been silent when
 * another one fails.
 */
export async function anyAnswers(servers: readonly PolledServer[]): Promise<boolean> {
  let answers = false;
  // The poll that is under way may have begun before the server came back.
  const polls = servers.map((server) => server.state().catch(() => server.state()));
  const any = Promise.any(polls).then(
    () => {
      answers = true;
    },
    () => undefined,
  );
  await atMost(ANSWER_MS_MAX, any);
  return answers;
}

function isKnown({ lastState, failure }: PolledServer): boolean {
  return lastState !== undefined || failure !== undefined;
}
