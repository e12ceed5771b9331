import { ClickHouseError } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { type DeadLetter, deadLetterId } from './dead-letters/dead-letter.ts';
import type { Epoch } from './epoch.ts';
import { type Ownership, Superseded } from './ownership.ts';
import type { RowBatch, RowMessage } from './row-batch.ts';
import { isolateBadRows, isRowFault } from './row-isolation.ts';
import { openSession, type Session } from './session.ts';
import { STATEMENTS } from './statements.ts';

/** FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: the insert found a newer epoch. */
const THROWN_IF = '395';

/** What became of a batch: all of its rows are stored, or some of them never will be. */
export type StoreOutcome =
  | { readonly outcome: 'stored'; readonly rows: number }
  | { readonly outcome: 'bad rows'; readonly rest: RowBatch; readonly bad: readonly DeadLetter[] };

export interface StagedStore {
  /**
   * Stores a batch: what is stored already adds nothing, so it may be called again after any failure. Rows that cannot
   * be parsed are found before anything is stored; the rest is then to be stored without them.
   *
   * @throws {Superseded} when a newer epoch has begun
   * @throws {TooManyDeadLetters} when far too many rows cannot be parsed
   * @throws ClickHouse's errors; then the batch is stored in part, whole or not at all
   */
  store(batch: RowBatch, epoch: Epoch): Promise<StoreOutcome>;
  /** Keeps dead letters; doing so again changes nothing. */
  keepDeadLetters(letters: readonly DeadLetter[], epoch: Epoch): Promise<void>;
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
  const open = (epoch: Epoch) => openSession(client, ownership.queryIdPrefix(epoch), statementTimeoutMs);

  async function load(session: Session, { events, changes }: RowBatch): Promise<void> {
    if (events.length > 0) {
      await session.run(STATEMENTS.stageEvents);
      await session.run(STATEMENTS.stageRepeats);
      await session.load(STATEMENTS.loadEvents, valuesOf(events));
    }
    if (changes.length > 0) {
      await session.run(STATEMENTS.stageChanges);
      await session.load(STATEMENTS.loadChanges, valuesOf(changes));
    }
  }

  async function storeChanges(session: Session): Promise<void> {
    await session.run(STATEMENTS.storeDeletions);
    await session.run(STATEMENTS.storeProperties);
    await session.run(STATEMENTS.storeSightings);
    await session.run(STATEMENTS.storeSeenInChanges);
  }

  async function storeEvents(session: Session, epoch: Epoch): Promise<number> {
    const [counts] = await session.read<{ stamped: number; rows: number }>(STATEMENTS.countStamped);
    if (counts?.stamped !== 0) await session.run(STATEMENTS.findRepeats);
    await session.run(STATEMENTS.storeSeenInEvents);
    await session.run(STATEMENTS.storeEvents, { group: groupId, ...epoch });
    return counts?.rows ?? 0;
  }

  async function isolate(batch: RowBatch, epoch: Epoch): Promise<StoreOutcome> {
    const session = open(epoch);
    await session.run(STATEMENTS.stageEvents);
    await session.run(STATEMENTS.stageChanges);
    const events = await isolateBadRows(session, batch.events);
    const changes = await isolateBadRows(session, batch.changes);
    await session.close();
    const bad = [...batch.unreadable, ...events.bad, ...changes.bad];
    return { outcome: 'bad rows', bad, rest: { events: events.good, changes: changes.good, unreadable: [] } };
  }

  async function store(batch: RowBatch, epoch: Epoch): Promise<StoreOutcome> {
    if (batch.unreadable.length > 0) {
      return { outcome: 'bad rows', bad: batch.unreadable, rest: { ...batch, unreadable: [] } };
    }
    const session = open(epoch);
    try {
      await load(session, batch);
    } catch (error) {
      if (isRowFault(error)) return await isolate(batch, epoch);
      throw error;
    }
    if (batch.changes.length > 0) await storeChanges(session);
    const rows = batch.events.length > 0 ? await storeEvents(session, epoch) : 0;
    await session.close();
    return { outcome: 'stored', rows };
  }

  return {
    async store(batch, epoch) {
      try {
        return await store(batch, epoch);
      } catch (error) {
        if (!(error instanceof ClickHouseError && error.code === THROWN_IF)) throw error;
        throw new Superseded('a newer generation of writers has begun', { cause: error });
      }
    },
    async keepDeadLetters(letters, epoch) {
      const session = open(epoch);
      const rows = letters.map((letter) => ({
        ...letter,
        id: deadLetterId(letter),
        row: letter.row.toString('base64'),
      }));
      await session.load(STATEMENTS.storeDeadLetters, [Buffer.from(rows.map((row) => JSON.stringify(row)).join('\n'))]);
      await session.close();
    },
    async killAll(epoch) {
      const query_params = { prefix: `${ownership.queryIdPrefix(epoch)}/` };
      await client.command({ query: STATEMENTS.killOwn.sql, query_params });
    },
  };
}

function valuesOf(messages: readonly RowMessage[]): Buffer[] {
  return messages.map(({ value }) => value);
}
