import type { Logger } from '@sluice/shared/base/log';
import { backoff, sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { WebhookProgress } from './webhook.ts';

const RETRY_MS = 250;
const RETRY_MS_MAX = 5_000;

/** How many positions are stored by one statement. */
const ROWS_MAX = 1_000;

/** How long a position that may be stored later waits for others, in milliseconds. */
const SOON_MS = 200;

/** How long the deliveries of a webhook go on while none of their positions is stored, in milliseconds. */
const UNSTORED_MS_MAX = 1_000;

interface Waiting {
  progress: WebhookProgress;
  /** Of the oldest position that it stands for, on the clock of `performance`. */
  readonly sinceMs: number;
  readonly stored: PromiseWithResolvers<void>;
}

/**
 * Stores the positions of all webhooks of this instance. What comes while a statement runs is stored by the next one, of each
 * webhook only the last. Positions of an epoch are left out once there is one of a newer epoch: they would not count.
 */
export class WebhookPositions {
  readonly #client: ClickHouseClient;
  readonly #logger: Logger;
  readonly #waiting = new Map<string, Waiting>();
  /** What the statement stores that runs now. */
  #storing: ReadonlyMap<string, Waiting> = new Map();
  readonly #sequences = new Map<string, { readonly epoch: number; sequence: number }>();
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  /** Whether something waits that is not to be stored later. */
  #isUrgent = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(client: ClickHouseClient, logger: Logger) {
    this.#client = client;
    this.#logger = logger;
  }

  /** Resolves once the position, or a later one of the webhook, is stored. It retries. @throws {Error} after {@link stop} */
  store(webhook: string, progress: WebhookProgress): Promise<void> {
    const { stored } = this.#add(webhook, progress);
    this.#isUrgent = true;
    this.#keepRunning();
    return stored.promise;
  }

  /**
   * Stores the position in a moment, together with those that come meanwhile. It resolves at once, unless no position of the
   * webhook could be stored lately: then it waits for that.
   *
   * @throws {Error} after {@link stop}
   */
  async storeSoon(webhook: string, progress: WebhookProgress): Promise<void> {
    const added = this.#add(webhook, progress);
    if (!this.#running) this.#wakeUp();
    const oldest = this.#storing.get(webhook) ?? added;
    if (performance.now() - oldest.sinceMs > UNSTORED_MS_MAX) await oldest.stored.promise;
  }

  /** Resolves once every position of a webhook is stored. @throws {Error} after {@link stop} */
  async flush(webhook: string): Promise<void> {
    const waiting = this.#waiting.get(webhook);
    if (waiting) await this.store(webhook, waiting.progress);
    else await this.#storing.get(webhook)?.stored.promise;
  }

  /** Stores what waits, once, and nothing any more afterwards. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    if (this.#waiting.size > 0) this.#keepRunning();
    while (this.#running) await this.#running;
  }

  #add(webhook: string, progress: WebhookProgress): Waiting {
    const waiting = this.#waiting.get(webhook);
    if (waiting) {
      if (progress.epoch >= waiting.progress.epoch) waiting.progress = progress;
      return waiting;
    }
    const added = { progress, sinceMs: performance.now(), stored: Promise.withResolvers<void>() };
    // Nobody has to wait for it.
    added.stored.promise.catch(() => undefined);
    this.#waiting.set(webhook, added);
    return added;
  }

  #wakeUp(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#keepRunning();
    }, SOON_MS);
  }

  #keepRunning(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      // One may have come while the loop ended.
      if (this.#waiting.size === 0) return;
      if (this.#isUrgent || this.#stopping.signal.aborted) this.#keepRunning();
      else this.#wakeUp();
    });
  }

  async #run(): Promise<void> {
    const delays = backoff(RETRY_MS, RETRY_MS_MAX);
    do {
      this.#isUrgent = this.#waiting.size > ROWS_MAX;
      this.#storing = new Map([...this.#waiting].slice(0, ROWS_MAX));
      for (const webhook of this.#storing.keys()) this.#waiting.delete(webhook);
      const values = [...this.#storing].flatMap(([webhook, { progress }]) => this.#rowsOf(webhook, progress));
      while (!(await this.#insert(values))) {
        if (this.#stopping.signal.aborted) return this.#abandon();
        await sleep(delays.next().value, this.#stopping.signal);
      }
      for (const { stored } of this.#storing.values()) stored.resolve();
      this.#storing = new Map();
    } while (this.#isUrgent);
  }

  #abandon(): void {
    for (const { stored } of [...this.#storing.values(), ...this.#waiting.values()]) {
      stored.reject(new Error('the instance stops'));
    }
    this.#storing = new Map();
    this.#waiting.clear();
  }

  async #insert(values: readonly object[]): Promise<boolean> {
    if (values.length === 0) return true;
    try {
      await this.#client.insert({ table: 'webhook_positions', values: [...values], format: 'JSONEachRow' });
      return true;
    } catch (error) {
      this.#logger.warn({ reason: (error as Error).message }, 'cannot store the positions of webhooks; retrying');
      return false;
    }
  }

  #rowsOf(webhook: string, { epoch, ...progress }: WebhookProgress): readonly object[] {
    const known = this.#sequences.get(webhook);
    if (known && known.epoch > epoch) return [];
    const counted = known?.epoch === epoch ? known : { epoch, sequence: 0 };
    counted.sequence += 1;
    this.#sequences.set(webhook, counted);
    const { attempts, failingMs } = progress;
    const nowMs = Date.now();
    return [
      {
        ...{ webhook_id: webhook, epoch, sequence: counted.sequence, position: progress.position },
        ...{ sending_to: progress.sendingTo, attempts, log_lines: progress.logLines },
        // Their difference is what was counted, whatever the clock says.
        ...{ failing_since: attempts > 0 ? nowMs - failingMs : 0, stored_at: nowMs },
      },
    ];
  }
}
