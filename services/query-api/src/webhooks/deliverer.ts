import type { Logger } from '@sluice/shared/base/log';
import { atMost, sleep } from '@sluice/shared/base/retry';
import { Problem } from '@sluice/shared/http/problem';
import type { AttemptPlaces } from './attempt-places.ts';
import type { DeliveryLog } from './delivery-log.ts';
import type { OpenSource, PassedOver, Sendable, SentMessage } from './delivery-source.ts';
import type { Attempt, HttpSender } from './http-sender.ts';
import { type PauseReason, secretsOf, type Webhook, type WebhookProgress } from './webhook.ts';
import type { WebhookMetrics } from './webhook-metrics.ts';
import type { WebhookPositions } from './webhook-positions.ts';

/** The first delay after a failed attempt, in milliseconds; it doubles with each. */
const RETRY_MS_MIN = 1_000;

/** How long a source that ended is not opened again, in milliseconds. */
const REOPEN_MS = 200;

/** How long it is waited for the last position to be stored, in milliseconds. */
const FLUSH_MS_MAX = 5_000;

/** How often the position of a webhook without events is stored, in milliseconds. */
const IDLE_STORE_MS = 60_000;

export interface DelivererOptions {
  readonly open: OpenSource;
  readonly places: AttemptPlaces;
  readonly sender: HttpSender;
  readonly positions: WebhookPositions;
  readonly log: DeliveryLog;
  readonly metrics: WebhookMetrics;
  readonly logger: Logger;
  /** The longest delay between attempts, in milliseconds. */
  readonly retryMsMax: number;
  /** How long attempts may fail before the webhook is paused, in milliseconds. */
  readonly giveUpMs: number;
  /** Pauses the webhook; returns false if it was resumed or paused by somebody else since the delivery began. */
  readonly pause: (webhook: Webhook, reason: PauseReason) => Promise<boolean>;
}

/** What an instance that has the lease of a webhook begins with. */
export interface DelivererStart {
  readonly webhook: Webhook;
  /** Its epoch is that of the lease. */
  readonly progress: WebhookProgress;
  /** For how long the lease is in force, in milliseconds; 0 or less: not any more. */
  readonly leaseMsLeft: () => number;
}

/**
 * Delivers what the source of one webhook has, one message after the other, in its order:
 *
 *     next ──▶ [store where it ends, if it could be another one] ──▶ leave out what is hidden by now ──▶ send ──▶ next …
 *                                                                                              └─ fails ──▶ store the failure,
 *                                                                            close the source, wait, open it again
 *
 * The source is closed while a receiver is away, so that nothing is read for it. Positions are stored five times a second, and
 * deliveries wait when that fails. What was sent after the stored position is sent again with the same ids, since each delivery
 * is the same: one event, a whole batch, or what comes up to a stored position. Only what is deleted or expires between is left out.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #start: DelivererStart;
  readonly #stopping = new AbortController();
  readonly #aborted: Promise<void>;
  readonly #running: Promise<void>;
  #progress: WebhookProgress;
  #behindSinceMs = 0;
  #idleStored = performance.now();
  /** Since when attempts fail, on the clock of `performance`. */
  #failingFrom: number;
  #isPaused = false;
  /** What the receiver has asked for after its last response. */
  #retryAfterMs: number | undefined;

  constructor(options: DelivererOptions, start: DelivererStart) {
    this.#options = options;
    this.#start = start;
    this.#progress = start.progress;
    const { attempts, failingMs } = start.progress;
    this.#failingFrom = performance.now() - failingMs;
    this.#behindSinceMs = attempts > 0 ? Date.now() - failingMs : 0;
    this.#aborted = new Promise((resolve) => {
      this.#stopping.signal.addEventListener('abort', () => resolve());
    });
    this.#running = this.#run();
  }

  get webhook(): Webhook {
    return this.#start.webhook;
  }

  get epoch(): number {
    return this.#progress.epoch;
  }

  /** Since when an event waits, in milliseconds since 1970; 0 when none does. */
  get behindSinceMs(): number {
    return this.#behindSinceMs;
  }

  /** Whether it has paused its webhook, and delivers nothing any more. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Ends what is under way, and stores how far it is; nothing is sent afterwards. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    // Without a lease another instance may have begun already.
    const waitMs = Math.min(FLUSH_MS_MAX, this.#start.leaseMsLeft());
    if (waitMs > 0) await atMost(waitMs, this.#options.positions.flush(this.webhook.id)).catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let failures = 0;
    while (!signal.aborted && !this.#isPaused) {
      if (this.#progress.attempts > 0) await sleep(this.#delayBeforeNext(), signal);
      while (!signal.aborted && this.#start.leaseMsLeft() <= 0) await sleep(RETRY_MS_MIN, signal);
      if (signal.aborted) return;
      try {
        const hasFailed = await this.#deliverFrom();
        failures = 0;
        if (!hasFailed) await sleep(REOPEN_MS, signal);
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        // It may be the pause itself that fails: the next attempt pauses it.
        await this.#fail(error).catch(() => undefined);
        await sleep(this.#delayAfter(failures), signal);
      }
    }
  }

  /** Delivers until an attempt fails, or the source ends; returns whether one failed. @throws what keeps it from reading */
  async #deliverFrom(): Promise<boolean> {
    const { signal } = this.#stopping;
    const source = await this.#options.open(this.webhook, this.#progress.position);
    try {
      for (;;) {
        const next = await source.next(this.#progress.sendingTo, signal, (sinceMs) => {
          this.#behindSinceMs ||= sinceMs;
        });
        if (signal.aborted || next === 'end') return false;
        if (next?.kind === 'position') this.#passOver(next);
        if (next?.kind === 'message' && !(await this.#deliver(next))) return true;
      }
    } finally {
      source.close();
    }
  }

  /** Nothing up to a position has to be delivered, or any more: what failed may be deleted by now. */
  #passOver({ position, isStored }: Omit<PassedOver, 'kind'>): void {
    this.#behindSinceMs = 0;
    const hasFailed = this.#progress.attempts > 0;
    this.#progress = { ...this.#progress, position, sendingTo: '', attempts: 0, failingMs: 0 };
    if (!(isStored || hasFailed) && performance.now() - this.#idleStored < IDLE_STORE_MS) return;
    this.#idleStored = performance.now();
    void this.#options.positions.storeSoon(this.webhook.id, this.#progress).catch(() => undefined);
  }

  /** Returns whether it was delivered, or nothing of it may be any more. */
  async #deliver(sendable: Sendable): Promise<boolean> {
    const { places, metrics } = this.#options;
    const { end, isWhole } = sendable;
    if (!isWhole) await this.#store({ sendingTo: end });
    const free = await places.forDelivery(this.webhook.workspace, this.#stopping.signal);
    const sent = free && (await this.#send(sendable).finally(free));
    if (!sent) return false;
    if (sent === 'hidden') {
      this.#passOver({ position: end, isStored: false });
      return true;
    }
    const { attempt, message } = sent;
    this.#log(message, attempt);
    metrics.attempts.inc({ outcome: attempt.isDelivered ? 'delivered' : 'failed' });
    const logLines = this.#progress.logLines + 1;
    if (!attempt.isDelivered) {
      await this.#noteFailure(attempt, logLines, sendable);
      return false;
    }
    metrics.deliveredEvents.inc(message.events);
    this.#behindSinceMs = 0;
    this.#progress = { ...this.#progress, position: end, sendingTo: '', attempts: 0, failingMs: 0, logLines };
    const stored = this.#options.positions.storeSoon(this.webhook.id, this.#progress);
    await Promise.race([stored, this.#aborted]);
    return true;
  }

  /**
   * Sends what is not hidden by now. Nothing that may take long comes between this decision and the attempt. Returns undefined when
   * it has to stop.
   */
  async #send(sendable: Sendable) {
    const { signal } = this.#stopping;
    const message = await sendable.message();
    if (!message) return 'hidden';
    // The process may have been frozen since it renewed its lease.
    if (signal.aborted || this.#start.leaseMsLeft() <= 0) return undefined;
    const secrets = secretsOf(this.webhook, Date.now());
    const attempt = await this.#options.sender.send(this.webhook.url, message, secrets, signal);
    // Aborted, it is no failure of the receiver.
    if (signal.aborted && !attempt.isDelivered) return undefined;
    return { attempt, message };
  }

  async #noteFailure(attempt: Attempt, logLines: number, { isWhole, end }: Sendable): Promise<void> {
    const attempts = this.#progress.attempts + 1;
    if (attempts === 1) this.#failingFrom = performance.now();
    const failingMs = Math.round(performance.now() - this.#failingFrom);
    this.#retryAfterMs = attempt.retryAfterMs;
    const sendingTo = isWhole ? this.#progress.sendingTo : end;
    await this.#store({ sendingTo, attempts, failingMs, logLines });
    if (attempt.status === 410) await this.#pause('gone', attempt.error);
    else if (failingMs >= this.#options.giveUpMs) await this.#pause('failing', attempt.error);
  }

  #log({ id, type, events }: SentMessage, attempt: Attempt): void {
    const line = {
      ...{ at_ms: Date.now(), message_id: id, type, events, attempt: this.#progress.attempts + 1 },
      ...{ status: attempt.status, duration_ms: attempt.durationMs, error: attempt.error },
    };
    this.#options.log.add(this.webhook.id, line, this.#progress.logLines);
  }

  async #store(change: Partial<WebhookProgress>): Promise<void> {
    this.#progress = { ...this.#progress, ...change };
    const stored = this.#options.positions.store(this.webhook.id, this.#progress);
    await Promise.race([stored, this.#aborted]);
  }

  async #fail(error: unknown): Promise<void> {
    const { message: reason } = error as Error;
    const code = error instanceof Problem ? error.code : undefined;
    if (code === 'position_lost') return await this.#pause('position_lost', reason);
    if (code === 'invalid_request') return await this.#pause('filter', reason);
    // Whatever else it is may pass: also a query that ran out of time, since ClickHouse may have been busy.
    this.#options.logger.warn({ webhook: this.webhook.id, reason }, 'cannot read what a webhook sends; retrying');
  }

  async #pause(reason: PauseReason, cause: string): Promise<void> {
    const { logger, metrics, pause } = this.#options;
    const { id, workspace } = this.webhook;
    if (this.#start.leaseMsLeft() <= 0) return;
    if (!(await pause(this.webhook, reason))) return;
    this.#isPaused = true;
    metrics.paused.inc({ reason });
    logger.error(
      { webhook: id, workspace, reason, cause },
      'a webhook is paused: its events are not delivered any more',
    );
  }

  /** What the receiver has asked for counts instead of the usual delay, within the bounds of that. */
  #delayBeforeNext(): number {
    const asked = this.#retryAfterMs;
    this.#retryAfterMs = undefined;
    if (asked === undefined) return this.#delayAfter(this.#progress.attempts);
    return Math.min(Math.max(asked, RETRY_MS_MIN), this.#options.retryMsMax);
  }

  #delayAfter(attempts: number): number {
    const delay = Math.min(RETRY_MS_MIN * 2 ** Math.min(attempts - 1, 30), this.#options.retryMsMax);
    return delay * (0.5 + Math.random() / 2);
  }
}
