import { randomUUID } from 'node:crypto';
import { ClickHouseError } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { type DeadLetter, deadLetterId } from './dead-letters/dead-letter.ts';
import type { Epoch } from './epoch.ts';
import { type Ownership, Superseded } from './ownership.ts';
import {
  afterFailure,
  afterRefusal,
  afterStep,
  type BatchContents,
  type BatchState,
  newBatch,
  nextStep,
  type Step,
} from './protocol.ts';
import type { RowBatch, RowMessage } from './row-batch.ts';
import { isolateBadRows, isRowFault } from './row-isolation.ts';
import { openSession, type Session } from './session.ts';
import { STATEMENTS } from './statements.ts';

/** FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: the insert found a newer epoch. */
const THROWN_IF = '395';

/**
 * A batch for more partitions of the table is stored without its text indexes. Each partition gets a part of its own, and
 * the indexes are 42 of the 54 files of a part, each synced to the disk. They are built by the next merge of the part,
 * whose few rows are read whole until then.
 */
const PARTITIONS_INDEXED_MAX = 12;

/** What `examine` counts: rows of a kind, and those whose user was deleted after their receipt. */
interface Examined {
  /** Partitions of the table, not of Kafka. */
  readonly partitions: number;
  readonly stamped: number;
  readonly seen: number;
  readonly properties: number;
  readonly deletions: number;
  readonly deleted_events: number;
  readonly deleted_changes: number;
}

/** What became of the rows of a batch. */
export interface StoredRows {
  /** The rows that were loaded. */
  readonly rows: number;
  /** Those of them that were left out because their user was deleted after their receipt. */
  readonly userDeleted: number;
}

/** A batch on its way into ClickHouse. */
export interface StagedBatch {
  /**
   * Does what is next, until there is nothing left to do: then every row is stored, or kept as a dead letter. May be
   * called again after any failure, and then does first what makes that safe.
   *
   * @throws {Superseded} when a newer epoch has begun
   * @throws ClickHouse's errors; then the batch is stored in part, whole or not at all
   */
  store(): Promise<StoredRows>;
  /**
   * Ends whatever of the batch may still run and frees what is staged, so that its rows may be stored in other batches.
   *
   * @throws ClickHouse's errors; then something may be running still, and it can be called again
   */
  end(): Promise<void>;
}

export interface StagedStore {
  /** @param onDeadLetters is told of rows that cannot be stored, once they are kept */
  open(batch: RowBatch, epoch: Epoch, onDeadLetters: (letters: readonly DeadLetter[]) => void): StagedBatch;
}

export interface StagedStoreOptions {
  readonly client: ClickHouseClient;
  readonly ownership: Pick<Ownership, 'queryIdPrefix'>;
  readonly groupId: string;
  readonly statementTimeoutMs: number;
}

/**
 * Stores batches through temporary tables of a session of its own for each attempt, with SQL alone: the bytes are
 * loaded as they are; then come deletions, what users and organizations have become, and last the events that are not
 * stored yet. `protocol.ts` decides what is done when; here it is carried out.
 */
export function createStagedStore({ client, ownership, groupId, statementTimeoutMs }: StagedStoreOptions): StagedStore {
  return {
    open(batch, epoch, onDeadLetters) {
      const queryIdPrefix = `${ownership.queryIdPrefix(epoch)}/${randomUUID()}`;
      let rows = batch;
      let letters = batch.unreadable;
      let state: BatchState = newBatch(contents());
      let session: Session | undefined;
      let examined: Examined | undefined;
      const loaded = { events: 0, changes: 0 };

      function contents(): BatchContents {
        return {
          hasEvents: rows.events.length > 0,
          hasChanges: rows.changes.length > 0,
          hasDeadLetters: letters.length > 0,
        };
      }

      function staging(): Session {
        session ??= openSession(client, queryIdPrefix, statementTimeoutMs);
        return session;
      }

      async function closeSession(): Promise<void> {
        await session?.close();
        session = undefined;
      }

      /**
       * What is running is killed. What was sent but has not begun finds that its tables are gone with the session. A
       * statement that begins between the two keeps the session from being closed, and both are done again.
       */
      async function endOwnStatements(): Promise<void> {
        await client.command({ query: STATEMENTS.killOwn.sql, query_params: { prefix: `${queryIdPrefix}/` } });
        await closeSession();
      }

      /** Looks up the deletions that concern the batch, counts what it holds, and takes out what they hide. */
      async function examine(): Promise<Examined> {
        if (!state.hasEvents) await staging().run(STATEMENTS.stageEvents);
        if (!state.hasChanges) await staging().run(STATEMENTS.stageChanges);
        await staging().run(STATEMENTS.findDeletions);
        const [counts] = await staging().read<Examined>(STATEMENTS.examine);
        if (!counts) throw new Error('ClickHouse has not counted the rows of a batch');
        if (counts.deleted_events > 0) {
          await staging().run(STATEMENTS.storeSeenInDeletedEvents);
          await staging().run(STATEMENTS.dropDeletedEvents);
        }
        if (counts.deleted_changes > 0) await staging().run(STATEMENTS.dropDeletedChanges);
        return counts;
      }

      async function storeDeletions(): Promise<void> {
        examined = await examine();
        if (examined.deletions > 0) await staging().run(STATEMENTS.storeDeletions);
      }

      async function findRepeats(): Promise<void> {
        examined ??= await examine();
        if (examined.stamped > 0) await staging().run(STATEMENTS.findRepeats);
      }

      async function storeEvents(): Promise<void> {
        const scattered = (examined?.partitions ?? 0) > PARTITIONS_INDEXED_MAX;
        const settings = scattered ? { materialize_skip_indexes_on_insert: 0 as const } : {};
        await staging().run(STATEMENTS.storeEvents, { group: groupId, ...epoch }, settings);
      }

      async function isolate(): Promise<void> {
        await closeSession();
        const isolatedEvents = await isolateBadRows(staging(), rows.events);
        const isolatedChanges = await isolateBadRows(staging(), rows.changes);
        await closeSession();
        const bad = [...isolatedEvents.bad, ...isolatedChanges.bad];
        if (bad.length === 0) throw new Error('ClickHouse takes each row by itself, but not all of them together');
        letters = [...letters, ...bad];
        rows = { events: isolatedEvents.good, changes: isolatedChanges.good, unreadable: [] };
        state = newBatch(contents());
      }

      async function keepDeadLetters(): Promise<void> {
        const lines = letters.map((letter) =>
          JSON.stringify({ ...letter, id: deadLetterId(letter), row: letter.row.toString('base64') }),
        );
        await staging().load(STATEMENTS.storeDeadLetters, [Buffer.from(lines.join('\n'))]);
        await closeSession();
        const kept = letters;
        letters = [];
        onDeadLetters(kept);
      }

      async function perform(step: Step): Promise<void> {
        switch (step) {
          case 'end own statements':
            return await endOwnStatements();
          case 'isolate bad rows':
            return await isolate();
          case 'keep dead letters':
            return await keepDeadLetters();
          case 'load events':
            // Of another session, perhaps, whose tables are gone.
            examined = undefined;
            await staging().run(STATEMENTS.stageEvents);
            await staging().run(STATEMENTS.stageRepeats);
            loaded.events = await staging().load(STATEMENTS.loadEvents, valuesOf(rows.events));
            return;
          case 'load changes':
            examined = undefined;
            await staging().run(STATEMENTS.stageChanges);
            loaded.changes = await staging().load(STATEMENTS.loadChanges, valuesOf(rows.changes));
            return;
          case 'store deletions':
            return await storeDeletions();
          case 'store properties':
            if (examined?.properties !== 0) await staging().run(STATEMENTS.storeProperties);
            return;
          case 'store sightings':
            if (examined?.seen !== 0) await staging().run(STATEMENTS.storeSightings);
            return;
          case 'store seen in changes':
            if (examined?.seen !== 0) await staging().run(STATEMENTS.storeSeenInChanges);
            return;
          case 'find repeats':
            return await findRepeats();
          case 'store seen in events':
            return await staging().run(STATEMENTS.storeSeenInEvents);
          case 'store events':
            return await storeEvents();
          case 'close session':
            return await closeSession();
          case 'commit':
            return;
        }
      }

      async function takeStep(step: Step): Promise<void> {
        try {
          await perform(step);
          state = afterStep(state, step);
        } catch (error) {
          const refused = (step === 'load events' || step === 'load changes') && isRowFault(error);
          state = refused ? afterRefusal(state) : afterFailure(state);
          if (refused) return;
          if (!(error instanceof ClickHouseError && error.code === THROWN_IF)) throw error;
          throw new Superseded('a newer generation of writers has begun', { cause: error });
        }
      }

      return {
        async store() {
          for (let step = nextStep(state); step !== 'commit'; step = nextStep(state)) await takeStep(step);
          const { deleted_events = 0, deleted_changes = 0 } = examined ?? {};
          return { rows: loaded.events + loaded.changes, userDeleted: deleted_events + deleted_changes };
        },
        end: endOwnStatements,
      };
    },
  };
}

function valuesOf(messages: readonly RowMessage[]): Buffer[] {
  return messages.map(({ value }) => value);
}
