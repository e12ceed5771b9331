import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Component } from '@sluice/shared/service/lifecycle';
import { readPartitions } from '@sluice/storage/clickhouse/known-partitions';
import type { Replicas } from '@sluice/storage/clickhouse/replicas';
import { STATEMENTS } from '@sluice/storage/clickhouse/statements';
import type { StoredThrough } from '@sluice/storage/kafka/lag';
import { nameOf } from '@sluice/storage/protocol/position';

export interface StoringProgressOptions {
  readonly client: ClickHouseClient;
  /** The consumer group of the writers. */
  readonly groupId: string;
  /** Returns how far the group has stored the log; `undefined` while that is not known. */
  readonly storedThrough: () => Promise<StoredThrough | undefined>;
  /** Undefined where a server has its rows alone. */
  readonly replicas?: Pick<Replicas, 'readPositions'> | undefined;
  /** Called with until when everything is stored, in milliseconds since 1970. Default: nobody else needs it. */
  readonly onStored?: ((throughMs: number) => void) | undefined;
  readonly logger: Logger;
  /** How often the progress is recorded, in milliseconds. */
  readonly intervalMs: number;
}

/**
 * Records how far the server is, again and again. One writer of the group does: the one that owns the first partition of the
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
    const { intervalMs } = this.#options;
    while (!signal.aborted) {
      await sleep(intervalMs, signal);
      if (this.#isOwner && !signal.aborted) await this.#record();
    }
  }

  async #record(): Promise<void> {
    const { client, storedThrough, onStored, logger } = this.#options;
    try {
      // Before the newest block is read: what is stored by then is in blocks up to that one.
      const stored = await storedThrough();
      if (!stored || !this.#isOwner) return;
      await this.#requirePositions(stored);
      const { throughMs } = stored;
      onStored?.(throughMs);
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

  /**
   * Commits outlive a database whose disk was lost. What was committed is stored only where the database has its positions,
   * which are stored before it is committed.
   *
   * @throws when the database has not what was committed
   */
  async #requirePositions({ committed }: StoredThrough): Promise<void> {
    const { client, groupId, replicas } = this.#options;
    await replicas?.readPositions();
    const { positions } = await readPartitions(client, groupId);
    const missing = committed.find((one) => one.offset > (positions.get(nameOf(one))?.nextOffset ?? 0n));
    if (!missing) return;
    throw new Error(
      `the database lacks messages of ${nameOf(missing)}: the group has committed offset ${missing.offset}, and ` +
        `${positions.get(nameOf(missing))?.nextOffset ?? 'no position'} is stored`,
    );
  }
}
