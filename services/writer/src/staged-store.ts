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

/** A batch on its way into ClickHouse. */
export interface StagedBatch {
  /**
   * Does what is next, until there is nothing left to do: then every row is stored, or kept as a dead letter. May be
   * called again after any failure, and then does first what makes that safe.
   *
   * @returns how many rows were loaded
   * @throws {Superseded} when a newer epoch has begun
   * @throws ClickHouse's errors; then the batch is stored in part, whole or not at all
   */
  store(): Promise<number>;
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

      async function findRepeats(): Promise<void> {
        const [stamped] = await staging().read<{ rows: number }>(STATEMENTS.countStamped);
        if (stamped?.rows !== 0) await staging().run(STATEMENTS.findRepeats);
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
            await staging().run(STATEMENTS.stageEvents);
            await staging().run(STATEMENTS.stageRepeats);
            loaded.events = await staging().load(STATEMENTS.loadEvents, valuesOf(rows.events));
            return;
          case 'load changes':
            await staging().run(STATEMENTS.stageChanges);
            loaded.changes = await staging().load(STATEMENTS.loadChanges, valuesOf(rows.changes));
            return;
          case 'store deletions':
            return await staging().run(STATEMENTS.storeDeletions);
          case 'store properties':
            return await staging().run(STATEMENTS.storeProperties);
          case 'store sightings':
            return await staging().run(STATEMENTS.storeSightings);
          case 'store seen in changes':
            return await staging().run(STATEMENTS.storeSeenInChanges);
          case 'find repeats':
            return await findRepeats();
          case 'store seen in events':
            return await staging().run(STATEMENTS.storeSeenInEvents);
          case 'store events':
            return await staging().run(STATEMENTS.storeEvents, { group: groupId, ...epoch });
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
          return loaded.events + loaded.changes;
        },
        end: endOwnStatements,
      };
    },
  };
}

function valuesOf(messages: readonly RowMessage[]): Buffer[] {
  return messages.map(({ value }) => value);
}
