import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Logger } from '@sluice/shared/log';
import { backoff, sleep } from '@sluice/shared/retry';
import type { WebhookProgress } from './webhook.ts';

const RETRY_MS = 250;
const RETRY_MS_MAX = 5_000;

/** How many positions are stored by one statement. */
const ROWS_MAX = 1_000;

interface Waiting {
  progress: WebhookProgress;
  readonly stored: PromiseWithResolvers<void>;
}

/**
 * Stores the positions of all webhooks of this instance. What comes while a statement runs is stored by the next one, of each
 * webhook only the last.
 */
export class WebhookPositions {
  readonly #client: ClickHouseClient;
  readonly #logger: Logger;
  readonly #waiting = new Map<string, Waiting>();
  readonly #sequences = new Map<string, { readonly epoch: number; sequence: number }>();
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(client: ClickHouseClient, logger: Logger) {
    this.#client = client;
    this.#logger = logger;
  }

  /** Resolves once the position, or a later one of the webhook, is stored. It retries. @throws {Error} after {@link stop} */
  store(webhook: string, progress: WebhookProgress): Promise<void> {
    const waiting = this.#waiting.get(webhook);
    if (waiting) waiting.progress = progress;
    const { stored } = waiting ?? this.#add(webhook, progress);
    this.#keepRunning();
    return stored.promise;
  }

  /** Stores what waits, once, and nothing any more afterwards. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  #add(webhook: string, progress: WebhookProgress): Waiting {
    const added = { progress, stored: Promise.withResolvers<void>() };
    // Nobody has to wait for it.
    added.stored.promise.catch(() => undefined);
    this.#waiting.set(webhook, added);
    return added;
  }

  #keepRunning(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      // One may have come while the loop ended.
      if (this.#waiting.size > 0) this.#keepRunning();
    });
  }

  async #run(): Promise<void> {
    const delays = backoff(RETRY_MS, RETRY_MS_MAX);
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, ROWS_MAX);
      for (const [webhook] of batch) this.#waiting.delete(webhook);
      const values = batch.map(([webhook, { progress }]) => this.#rowOf(webhook, progress));
      while (!(await this.#insert(values))) {
        if (this.#stopping.signal.aborted) return this.#abandon(batch.map(([, waiting]) => waiting));
        await sleep(delays.next().value, this.#stopping.signal);
      }
      for (const [, { stored }] of batch) stored.resolve();
    }
  }

  #abandon(batch: readonly Waiting[]): void {
    for (const { stored } of [...batch, ...this.#waiting.values()]) stored.reject(new Error('the instance stops'));
    this.#waiting.clear();
  }

  async #insert(values: readonly object[]): Promise<boolean> {
    try {
      await this.#client.insert({ table: 'webhook_positions', values: [...values], format: 'JSONEachRow' });
      return true;
    } catch (error) {
      this.#logger.warn({ reason: (error as Error).message }, 'cannot store the positions of webhooks; retrying');
      return false;
    }
  }

  #rowOf(webhook: string, { epoch, ...progress }: WebhookProgress): object {
    const known = this.#sequences.get(webhook);
    const counted = known?.epoch === epoch ? known : { epoch, sequence: 0 };
    counted.sequence += 1;
    this.#sequences.set(webhook, counted);
    return {
      ...{ webhook_id: webhook, epoch, sequence: counted.sequence, position: progress.position },
      ...{ sending_to: progress.sendingTo, attempts: progress.attempts, failing_since: progress.failingSinceMs },
      log_lines: progress.logLines,
    };
  }
}
