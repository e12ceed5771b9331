import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { RowBatch } from './row-batch.ts';
import { killStatements, openSession } from './session.ts';
import { STATEMENTS } from './statements.ts';

export interface StagedStore {
  /**
   * Stores a batch: what is stored already adds nothing, so it may be called again after any failure.
   *
   * @throws ClickHouse's errors; then the batch is stored in part, whole or not at all
   */
  store(batch: RowBatch): Promise<void>;
  /** Makes sure that no statement of this writer is running any more. */
  killAll(): Promise<void>;
}

/**
 * Stores batches through temporary tables of a session of its own for each, with SQL alone: load the bytes as they
 * are; then deletions, what users and organizations have become, and last the events that are not stored yet. Every
 * step before the last can be repeated without effect, so a crash anywhere leaves nothing missing and nothing twice.
 */
export function createStagedStore(client: ClickHouseClient, writerId: string, statementTimeoutMs: number): StagedStore {
  const queryIdPrefix = `sluice-writer/${writerId}`;
  return {
    async store({ events, changes }) {
      const session = openSession(client, queryIdPrefix, statementTimeoutMs);
      if (events.length > 0) {
        await session.run(STATEMENTS.stageEvents);
        await session.run(STATEMENTS.stageRepeats);
        await session.load(STATEMENTS.loadEvents, events);
      }
      if (changes.length > 0) {
        await session.run(STATEMENTS.stageChanges);
        await session.load(STATEMENTS.loadChanges, changes);
        await session.run(STATEMENTS.storeDeletions);
        await session.run(STATEMENTS.storeProperties);
        await session.run(STATEMENTS.storeSightings);
        await session.run(STATEMENTS.storeSeenInChanges);
      }
      if (events.length > 0) {
        const [counts] = await session.read<{ stamped: number }>(STATEMENTS.countStamped);
        if (counts?.stamped !== 0) await session.run(STATEMENTS.findRepeats);
        await session.run(STATEMENTS.storeSeenInEvents);
        await session.run(STATEMENTS.storeEvents);
      }
      await session.close();
    },
    async killAll() {
      await killStatements(client, queryIdPrefix);
    },
  };
}
