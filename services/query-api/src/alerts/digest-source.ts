import { isDeepStrictEqual } from 'node:util';
import { Problem } from '@sluice/shared/http/problem';
import { messageId, type OpenSource, type Webhook } from '../webhooks/webhooks.ts';
import { LATE_MS, type SourcesOptions } from './alert-source.ts';
import { DecidingSource, type Decision } from './deciding-source.ts';
import { type Digest, type DigestState, lastDue, NEW_DIGEST } from './digest.ts';
import { type DigestNumber, digestBody } from './messages.ts';
import { failure, lateness, reasonOf } from './trouble.ts';

const HOUR_MS = 3_600_000;

/** How long a digest waits after numbers could not be read, in milliseconds. */
const RETRY_MS = 60_000;

/** Problems that pass: the digest waits for their end, so that it has its numbers. */
const PASSING: readonly string[] = ['store_unavailable', 'overloaded'];

/** Returns what opens the messages of digests. */
export function digestSources(options: SourcesOptions): OpenSource {
  return async (webhook, position) => {
    const { find, everyMs, metrics } = options;
    const { state = NEW_DIGEST } = JSON.parse(position) as Partial<Decision<DigestState>>;
    let notBefore = 0;
    return new DecidingSource<DigestState>({
      ...{ webhook, type: 'digest', state, everyMs },
      find: () => find(webhook.workspace, webhook.id),
      async look(before, signal) {
        if (performance.now() < notBefore) return undefined;
        const decided = await decide(options, webhook, before, signal).catch((error) => {
          notBefore = performance.now() + RETRY_MS;
          return { state: { ...before, trouble: failure(webhook.id, error, options) } };
        });
        metrics.note(webhook.id, decided.state.trouble?.kind);
        return isDeepStrictEqual(decided.state, before) ? undefined : decided;
      },
      onClose: () => metrics.forget(webhook.id),
    });
  };
}

/** After an outage the last digest that was due is sent, and none of before. */
async function decide(
  { clock, numbers, metrics }: SourcesOptions,
  webhook: Webhook,
  before: DigestState,
  signal: AbortSignal,
): Promise<Decision<DigestState>> {
  const digest = webhook.content as unknown as Digest;
  const time = await clock.read();
  const { nowMs, throughMs = 0 } = time;
  // The first one is the next that is due.
  const known = before.dueMs === 0 ? { ...before, dueMs: lastDue(digest, nowMs).dueMs } : before;
  const { dueMs, endMs } = lastDue(digest, Math.min(nowMs, throughMs - LATE_MS));
  if (dueMs <= known.dueMs) {
    const isLate = lastDue(digest, nowMs - HOUR_MS).dueMs > known.dueMs;
    return { state: { ...known, trouble: isLate ? lateness(time) : null } };
  }
  const { name, views } = await numbers.dashboard(webhook.workspace, digest.dashboard);
  const found: DigestNumber[] = [];
  for (const { id, view } of views) {
    const number = await numbers.upTo(webhook.workspace, view, endMs, signal).then(
      (one) => ({ ...one, error: null }),
      (error) => ({ value: null, before: null, error: lasting(error) }),
    );
    found.push({ view: { id, name: view.name }, ...number });
  }
  metrics.evaluations.inc({ outcome: 'evaluated' });
  const state = { dueMs, messages: known.messages + 1, messageAtMs: nowMs, trouble: null };
  const message = messageId(webhook.id, [`digest ${state.messages}`]);
  const body = digestBody({ id: webhook.id, message, digest, dashboardName: name, dueMs, endMs, numbers: found });
  return { state, message: { id: message, body, atMs: nowMs } };
}

/** Returns why a number cannot be read. @throws the error, if it passes */
function lasting(error: unknown): string {
  if (error instanceof Problem && !PASSING.includes(error.code)) return reasonOf(error);
  throw error;
}
