import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Ownership } from '../clickhouse/ownership.ts';
import type { DeadLetter } from '../protocol/dead-letter.ts';
import type { Epoch } from '../protocol/epoch.ts';
import type { RowBatch } from '../protocol/row-batch.ts';
import { StagedBatch } from './staged-batch.ts';

export interface StagedStoreOptions {
  readonly client: ClickHouseClient;
  readonly ownership: Pick<Ownership, 'queryIdPrefix'>;
  readonly groupId: string;
  readonly statementTimeoutMs: number;
}

/** Stores batches of rows in ClickHouse. */
export class StagedStore {
  readonly #options: StagedStoreOptions;

  constructor(options: StagedStoreOptions) {
    this.#options = options;
  }

  /** @param onDeadLetters is called with rows that cannot be stored, once they are in `dead_letters` */
  open(batch: RowBatch, epoch: Epoch, onDeadLetters: (deadLetters: readonly DeadLetter[]) => void): StagedBatch {
    const { ownership, ...options } = this.#options;
    const queryIdPrefix = `${ownership.queryIdPrefix(epoch)}/${randomUUID()}`;
    return new StagedBatch(batch, { ...options, queryIdPrefix, epoch, onDeadLetters });
  }
}
