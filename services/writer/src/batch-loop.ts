import type { Logger } from '@sluice/shared/log';
import { backoff, retry, sleep } from '@sluice/shared/retry';
import type { Assignment } from './assignment.ts';
import { createBatchSize } from './batch-size.ts';
import type { DeadLetter, DeadLetterAlarm } from './dead-letters/dead-letter.ts';
import type { Epoch } from './epoch.ts';
import { createGatherer, type Gatherer } from './gatherer.ts';
import type { WriterMetrics } from './metrics.ts';
import { Superseded } from './ownership.ts';
import { nameOf, placeAfter } from './place.ts';
import type { Position, Positions } from './positions.ts';
import { type SourceMessage, toRowBatch } from './row-batch.ts';
import type { StagedStore } from './staged-store.ts';

const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;

export interface BatchLoopOptions {
  readonly store: StagedStore;
  readonly positions: Positions;
  /** Of a batch, in bytes of rows. */
  readonly bytesMax: number;
  readonly alarm: DeadLetterAlarm;
  readonly metrics: WriterMetrics;
  readonly logger: Logger;
}

/**
 * Stores the messages of all partitions in common batches, one after the other. A failure is retried for as long as the
 * assignment lasts: the rows are safe in Kafka, and only their age grows. What failed is cut into halves, since it may
 * have been too large; each piece is stored by itself, and the offsets may be committed when all of them are.
 */
export function createBatchLoop(options: BatchLoopOptions): Gatherer<Assignment> {
  const { store, positions, bytesMax, alarm, metrics, logger } = options;
  const size = createBatchSize(bytesMax);

  function onDeadLetters(letters: readonly DeadLetter[]): void {
    metrics.deadLetters.inc(letters.length);
    const reason = letters[0]?.reason;
    logger.error({ rows: letters.length, reason }, 'rows cannot be stored and were put into dead_letters');
    alarm.count(0, letters.length);
  }

  function onFailure(error: unknown, messages: number): void {
    if (error instanceof Superseded) throw error;
    metrics.storeFailures.inc();
    logger.warn({ reason: (error as Error).message, messages }, 'storing a batch failed; trying again');
  }

  async function storePiece(piece: readonly SourceMessage[], epoch: Epoch, signal: AbortSignal): Promise<boolean> {
    const staged = store.open(toRowBatch(piece), epoch, onDeadLetters);
    const startedAt = performance.now();
    try {
      const { rows, userDeleted } = await staged.store();
      alarm.count(rows, 0);
      metrics.rowsDropped.inc({ reason: 'user_deleted' }, userDeleted);
    } catch (error) {
      if (error instanceof Superseded) {
        // It expires by itself where it cannot be ended.
        staged.end().catch(() => undefined);
        throw error;
      }
      onFailure(error, piece.length);
      // Its rows are stored in other pieces next: nothing of it may be running then.
      await retry(() => staged.end(), {
        firstMs: FIRST_DELAY_MS,
        maxMs: MAX_DELAY_MS,
        signal,
        onFailure: (failure) => onFailure(failure, piece.length),
      });
      return false;
    }
    metrics.stored(piece, (performance.now() - startedAt) / 1_000);
    return true;
  }

  async function storeAll(messages: readonly SourceMessage[], { epoch, signal }: Assignment): Promise<void> {
    if (!epoch) throw new Superseded('nothing is stored before the partitions are taken over');
    let delays = backoff(FIRST_DELAY_MS, MAX_DELAY_MS);
    for (let done = 0; done < messages.length; ) {
      signal.throwIfAborted();
      const piece = size.firstOf(messages.slice(done));
      if (await storePiece(piece, epoch, signal)) {
        done += piece.length;
        size.worked();
        delays = backoff(FIRST_DELAY_MS, MAX_DELAY_MS);
      } else {
        size.failed(piece);
        await sleep(delays.next().value, signal);
      }
    }
    // After the rows, before their offsets are committed.
    await retry(() => positions.store(positionsAfter(messages), epoch), {
      firstMs: FIRST_DELAY_MS,
      maxMs: MAX_DELAY_MS,
      signal,
      onFailure: (error) => onFailure(error, messages.length),
    });
  }

  return createGatherer(storeAll, bytesMax);
}

/** Up to where the partitions of these messages, which are in the order of their offsets, are stored with them. */
function positionsAfter(messages: readonly SourceMessage[]): Position[] {
  const newest = new Map(messages.map((source) => [nameOf(source), source]));
  return [...newest.values()].map(({ topic, partition, message }) => ({ topic, partition, ...placeAfter(message) }));
}
