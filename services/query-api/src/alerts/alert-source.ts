import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '@sluice/shared/base/log';
import type { View } from '../manage/manage.ts';
import type { LogClock } from '../stream/stream.ts';
import { messageId, type OpenSource, type StoredWebhook, type Webhook } from '../webhooks/webhooks.ts';
import type { Alert } from './alert.ts';
import type { AlertMetrics } from './alert-metrics.ts';
import { type AlertState, judged, NEW_STATE, stateOf } from './alert-state.ts';
import { lastWindows, lengthOf, type TimeSpan, windowOf } from './alert-window.ts';
import { DecidingSource, type Decision } from './deciding-source.ts';
import { alertBody } from './messages.ts';
import { failure, lateness } from './trouble.ts';
import type { ViewNumbers } from './view-numbers.ts';

/**
 * How long after its end a window is whole, in milliseconds: clients gather events before they send them, and the clocks of servers
 * differ.
 */
export const LATE_MS = 30_000;

const MINUTE_MS = 60_000;

export interface SourcesOptions {
  readonly clock: Pick<LogClock, 'read'>;
  readonly numbers: ViewNumbers;
  /** Returns what is stored of a webhook; undefined if it is deleted. */
  readonly find: (workspace: string, id: string) => Promise<StoredWebhook | undefined>;
  /** How often the time of the log is looked at, in milliseconds. */
  readonly everyMs: number;
  readonly metrics: AlertMetrics;
  readonly logger: Logger;
}

/** Returns what opens the messages of alerts. */
export function alertSources(options: SourcesOptions): OpenSource {
  return async (webhook, position) => {
    const { find, everyMs, metrics } = options;
    const { state = NEW_STATE } = JSON.parse(position) as Partial<Decision<AlertState>>;
    const looks = new AlertLooks(options, webhook);
    return new DecidingSource({
      ...{ webhook, type: 'alert', state, everyMs },
      find: () => find(webhook.workspace, webhook.id),
      look: (before, signal) => looks.look(before, signal),
      onClose: () => metrics.forget(webhook.id),
    });
  };
}

/** Looks at the number of an alert, once in each whole minute of the log: no window ends within one. */
class AlertLooks {
  readonly #options: SourcesOptions;
  readonly #webhook: Webhook;
  readonly #alert: Alert;
  #lookedAt = '';

  constructor(options: SourcesOptions, webhook: Webhook) {
    this.#options = options;
    this.#webhook = webhook;
    this.#alert = webhook.content as unknown as Alert;
  }

  async look(stored: AlertState, signal: AbortSignal): Promise<Decision<AlertState> | undefined> {
    const before = stateOf(this.#alert, stored);
    const decided = await this.#decide(before, signal).catch((error) => {
      const trouble = failure(this.#webhook.id, error, this.#options);
      return { state: { ...before, trouble } };
    });
    if (!decided) return undefined;
    const { state } = decided;
    this.#options.metrics.note(this.#webhook.id, state.trouble?.kind);
    return isDeepStrictEqual(state, stored) ? undefined : decided;
  }

  async #decide(before: AlertState, signal: AbortSignal): Promise<Decision<AlertState> | undefined> {
    const { clock, numbers, metrics } = this.#options;
    const { workspace } = this.#webhook;
    const window = windowOf(this.#alert.window);
    if (!window) throw new Error(`an alert has the window ${this.#alert.window}`);
    const time = await clock.read();
    const { nowMs, throughMs } = time;
    const isLate = throughMs === undefined || nowMs - throughMs > lengthOf(window);
    const wholeMs = isLate ? nowMs : throughMs - LATE_MS;
    const moment = `${isLate} ${Math.floor(wholeMs / MINUTE_MS)}`;
    if (moment === this.#lookedAt) return undefined;
    // Also before a failure: it is tried again in the next minute.
    this.#lookedAt = moment;
    if (isLate) {
      metrics.evaluations.inc({ outcome: 'late' });
      return { state: { ...before, trouble: lateness(time) } };
    }
    const view = await numbers.view(workspace, this.#alert.view);
    const windows = lastWindows(window, view.parameters['timeZone'] ?? 'UTC', wholeMs);
    if (windows.last.endMs <= before.endMs) return { state: { ...before, trouble: null } };
    const value = await numbers.over(workspace, view, windows.last, signal);
    const compares = this.#alert.condition.is === 'changes';
    const valueBefore = compares ? await numbers.over(workspace, view, windows.before, signal) : null;
    metrics.evaluations.inc({ outcome: 'evaluated' });
    const after = judged(this.#alert, before, { endMs: windows.last.endMs, value, before: valueBefore });
    return after.firing === before.firing ? { state: after } : this.#changed(after, view, windows.last, nowMs);
  }

  #changed(after: AlertState, view: View, window: TimeSpan, nowMs: number): Decision<AlertState> {
    const state = { ...after, messages: after.messages + 1, messageAtMs: nowMs };
    const { id } = this.#webhook;
    const message = messageId(id, [`alert ${state.messages}`]);
    const body = alertBody({ id, message, alert: this.#alert, viewName: view.name, state, window });
    return { state, message: { id: message, body, atMs: nowMs } };
  }
}
