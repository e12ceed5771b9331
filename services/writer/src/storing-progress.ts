import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Component } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { sleep } from '@sluice/shared/retry';
import { STATEMENTS } from './clickhouse/statements.ts';

/** How often the progress is recorded, in milliseconds. */
const INTERVAL_MS = 2_000;

export interface StoringProgressOptions {
  readonly client: ClickHouseClient;
  /** Returns until when everything is stored, in milliseconds since 1970; `undefined` while that is not known. */
  readonly storedThrough: () => Promise<number | undefined>;
  readonly logger: Logger;
}

/**
 * Records how far the server is, every two seconds. One writer of the group does: the one that owns the first partition of the
 * events. What cannot be recorded is left out, and readers take the server for one that is behind.
 */
export class StoringProgress implements Component {
  readonly name = 'storing progress';
  readonly #options: StoringProgressOptions;
  readonly #stopping = new AbortController();
  #isOwner = false;
  #isFailing = false;
  #running: Promise<void> | undefined;

  constructor(options: StoringProgressOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#running ??= this.#run();
  }

  setOwner(isOwner: boolean): void {
    this.#isOwner = isOwner;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await sleep(INTERVAL_MS, signal);
      if (this.#isOwner && !signal.aborted) await this.#record();
    }
  }

  async #record(): Promise<void> {
    const { client, storedThrough, logger } = this.#options;
    try {
      // Before the newest block is read: what is stored by then is in blocks up to that one.
      const throughMs = await storedThrough();
      if (throughMs === undefined || !this.#isOwner) return;
      const result = await client.query({ query: STATEMENTS['read-newest-block'].sql, format: 'JSONEachRow' });
      const [row] = await result.json<{ newest: number }>();
      if (!row) throw new Error('ClickHouse has returned no newest block');
      const query_params = { throughMs, newestBlock: row.newest };
      await client.command({ query: STATEMENTS['record-progress'].sql, query_params });
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing)
        logger.warn({ reason: (error as Error).message }, 'recording the progress failed; retrying');
      this.#isFailing = true;
    }
  }
}
