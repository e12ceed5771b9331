import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Component } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { Measurement } from '@sluice/shared/measurement';
import {
  type PendingErasures,
  readBackupAge,
  readComparisons,
  readPendingErasures,
  readServerState,
  type ServerComparison,
  type ServerState,
} from './clickhouse/server-state.ts';

/** How long a reading is used, in milliseconds. */
const FRESH_MS = 5_000;

/** How long a reading may take, in milliseconds. */
const TIMEOUT_MS = 4_000;

/** What metrics read from ClickHouse: each reading is one query, for all who read the metrics at the same time. */
export class ClickHouseReadings implements Component {
  readonly name = 'ClickHouse readings';
  readonly #client: ClickHouseClient;
  readonly #logger: Logger;
  readonly #server: Measurement<ServerState>;
  readonly #erasures: Measurement<PendingErasures>;
  readonly #backupAge: Measurement<number>;
  readonly #comparisons: Measurement<readonly ServerComparison[]>;

  /** @param client its own: a reading must wait for no batch, and no batch for a reading */
  constructor(client: ClickHouseClient, logger: Logger) {
    this.#client = client;
    this.#logger = logger;
    this.#server = this.#reading('the disks and tables of ClickHouse', readServerState);
    this.#erasures = this.#reading('the pending erasures', readPendingErasures);
    this.#backupAge = this.#reading('the age of the last backup', readBackupAge);
    this.#comparisons = this.#reading('the comparisons with other servers', readComparisons);
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    const all = [this.#server, this.#erasures, this.#backupAge, this.#comparisons];
    await Promise.all(all.map((reading) => reading.settled()));
    await this.#client.close();
  }

  /** Returns the state of the server, some seconds old at most; `undefined` when it cannot be read. Never throws. */
  async server(): Promise<ServerState | undefined> {
    return await this.#server.read();
  }

  /** Returns the pending erasures, some seconds old at most; `undefined` when they cannot be read. Never throws. */
  async erasures(): Promise<PendingErasures | undefined> {
    return await this.#erasures.read();
  }

  /** Returns {@link readBackupAge}, some seconds old at most; `undefined` when it cannot be read. Never throws. */
  async backupAge(): Promise<number | undefined> {
    return await this.#backupAge.read();
  }

  /** Returns {@link readComparisons}, some seconds old at most; `undefined` when they cannot be read. Never throws. */
  async comparisons(): Promise<readonly ServerComparison[] | undefined> {
    return await this.#comparisons.read();
  }

  #reading<Result>(
    what: string,
    read: (client: ClickHouseClient, signal: AbortSignal) => Promise<Result>,
  ): Measurement<Result> {
    let logged: string | undefined;
    return new Measurement({
      measure: (signal) => read(this.#client, signal),
      freshMs: FRESH_MS,
      timeoutMs: TIMEOUT_MS,
      onFailure: (error) => {
        const reason = (error as Error).message;
        if (reason !== logged) this.#logger.warn({ reason }, `${what} cannot be read; their metrics are absent`);
        logged = reason;
      },
      onSuccess: () => {
        logged = undefined;
      },
    });
  }
}
