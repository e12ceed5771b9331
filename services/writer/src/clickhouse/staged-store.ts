import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { DeadLetter } from '../protocol/dead-letter.ts';
import type { Epoch } from '../protocol/epoch.ts';
import type { RowBatch } from '../protocol/row-batch.ts';
import type { Ownership } from './ownership.ts';
import { StagedBatch } from './staged-batch.ts';

/** Stores batches of rows in ClickHouse. */
export interface StagedStore {
  /** @param onDeadLetters is called with rows that cannot be stored, once they are in `dead_letters` */
  open(batch: RowBatch, epoch: Epoch, onDeadLetters: (deadLetters: readonly DeadLetter[]) => void): StagedBatch;
}

export interface StagedStoreOptions {
  readonly client: ClickHouseClient;
  readonly ownership: Pick<Ownership, 'queryIdPrefix'>;
  readonly groupId: string;
  readonly statementTimeoutMs: number;
}

export function createStagedStore({ client, ownership, groupId, statementTimeoutMs }: StagedStoreOptions): StagedStore {
  return {
    open(batch, epoch, onDeadLetters) {
      const queryIdPrefix = `${ownership.queryIdPrefix(epoch)}/${randomUUID()}`;
      return new StagedBatch(batch, { client, queryIdPrefix, statementTimeoutMs, groupId, epoch, onDeadLetters });
    },
  };
}
