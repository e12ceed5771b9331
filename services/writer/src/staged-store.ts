import { ClickHouseError } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Epoch } from './epoch.ts';
import { type Ownership, Superseded } from './ownership.ts';
import type { RowBatch } from './row-batch.ts';
import { openSession } from './session.ts';
import { STATEMENTS } from './statements.ts';

/** FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: the insert found a newer epoch. */
const THROWN_IF = '395';

export interface StagedStore {
  /**
   * Stores a batch: what is stored already adds nothing, so it may be called again after any failure.
   *
   * @throws {Superseded} when a newer epoch has begun
   * @throws ClickHouse's errors; then the batch is stored in part, whole or not at all
   */
  store(batch: RowBatch, epoch: Epoch): Promise<void>;
  /** Makes sure that nothing of this writer and epoch is running any more. */
  killAll(epoch: Epoch): Promise<void>;
}

export interface StagedStoreOptions {
  readonly client: ClickHouseClient;
  readonly ownership: Pick<Ownership, 'queryIdPrefix'>;
  readonly groupId: string;
  readonly statementTimeoutMs: number;
}

/**
 * Stores batches through temporary tables of a session of its own for each, with SQL alone: load the bytes as they
 * are; then deletions, what users and organizations have become, and last the events that are not stored yet. Every
 * step before the last can be repeated without effect, so a crash anywhere leaves nothing missing and nothing twice.
 */
export function createStagedStore({ client, ownership, groupId, statementTimeoutMs }: StagedStoreOptions): StagedStore {
  async function store({ events, changes }: RowBatch, epoch: Epoch): Promise<void> {
    const session = openSession(client, ownership.queryIdPrefix(epoch), statementTimeoutMs);
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
      await session.run(STATEMENTS.storeEvents, { group: groupId, ...epoch });
    }
    await session.close();
  }

  return {
    async store(batch, epoch) {
      try {
        await store(batch, epoch);
      } catch (error) {
        if (!(error instanceof ClickHouseError && error.code === THROWN_IF)) throw error;
        throw new Superseded('a newer generation of writers has begun', { cause: error });
      }
    },
    async killAll(epoch) {
      const query_params = { prefix: `${ownership.queryIdPrefix(epoch)}/` };
      await client.command({ query: STATEMENTS.killOwn.sql, query_params });
    },
  };
}
