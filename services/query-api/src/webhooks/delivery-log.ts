import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

/** How many attempts of each webhook the log has; of tests it shows as many besides. */
export const LOG_LINES_MAX = 100;

/** Tests have slots of their own, by the millisecond: all that a byte leaves, so that hardly any two share one. */
const TEST_SLOTS = 256 - LOG_LINES_MAX;

/** How often lines are stored, in milliseconds, and how many of them at most; the oldest ones are left out. */
const STORE_MS = 500;
const WAITING_MAX = 10_000;

const NEWEST_LINES = `
SELECT
  toUnixTimestamp64Milli(at) AS at_ms, message_id, type, events, attempt, status, duration_ms, error
FROM webhook_deliveries FINAL
WHERE webhook_id = {webhook:UUID}
ORDER BY at DESC, slot DESC
LIMIT ${LOG_LINES_MAX} BY type = 'test'`;

/** A line of the log: an attempt to deliver. */
export interface LogLine {
  /** In milliseconds since 1970. */
  readonly at_ms: number;
  readonly message_id: string;
  readonly type: 'event' | 'events' | 'alert' | 'digest' | 'test';
  readonly events: number;
  /** Counts the attempts of one delivery, from 1. */
  readonly attempt: number;
  /** HTTP status of the response; 0 if there was none. */
  readonly status: number;
  readonly duration_ms: number;
  readonly error: string;
}

/**
 * The last attempts of each webhook. It is no record of what was delivered: lines of the last half second are lost when the
 * process is killed, or when ClickHouse takes none.
 */
export class DeliveryLog {
  readonly #client: ClickHouseClient;
  readonly #logger: Logger;
  readonly #waiting = new Map<string, object>();
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(client: ClickHouseClient, logger: Logger) {
    this.#client = client;
    this.#logger = logger;
  }

  /** Returns the last attempts and the last tests, newest first. @throws ClickHouse's errors */
  async read(webhook: string): Promise<readonly LogLine[]> {
    const result = await this.#client.query({
      ...{ query: NEWEST_LINES, query_params: { webhook }, format: 'JSONEachRow' },
    });
    return await result.json<LogLine>();
  }

  /** @param number of the line among those of the webhook; a test has none, and its time is taken */
  add(webhook: string, line: LogLine, number = line.at_ms): void {
    const { at_ms: at, ...columns } = line;
    const slot = line.type === 'test' ? LOG_LINES_MAX + (number % TEST_SLOTS) : number % LOG_LINES_MAX;
    const key = `${webhook} ${slot}`;
    if (this.#waiting.size >= WAITING_MAX && !this.#waiting.has(key)) return;
    this.#waiting.set(key, { webhook_id: webhook, slot, at, ...columns });
    this.#keepRunning();
  }

  /** Stores what waits. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  #keepRunning(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      // One may have come while the loop ended.
      if (this.#waiting.size > 0) this.#keepRunning();
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      await sleep(STORE_MS, this.#stopping.signal);
      const values = [...this.#waiting.values()];
      this.#waiting.clear();
      try {
        await this.#client.insert({ table: 'webhook_deliveries', values, format: 'JSONEachRow' });
      } catch (error) {
        this.#logger.warn({ reason: (error as Error).message }, 'cannot store the log of deliveries; lines are lost');
      }
    }
  }
}
