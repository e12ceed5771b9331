import { context, type Link, type Span, SpanKind, trace } from '@opentelemetry/api';
import type { Logger } from '@sluice/shared/base/log';
import { backoff, retry, sleep } from '@sluice/shared/base/retry';
import { markFailed } from '@sluice/shared/tracing/failed-span';
import { sendOf, sharedWork, TRACE_HEADER } from '@sluice/shared/tracing/message-spans';
import { ATTRIBUTE, tracer } from '@sluice/shared/tracing/tracer';
import type { NewPosition, Positions } from '@sluice/storage/clickhouse/positions';
import type { Replicas } from '@sluice/storage/clickhouse/replicas';
import type { Assignment } from '@sluice/storage/protocol/assignment';
import { COLD_VOLUME_AWAY, type DeadLetter, errorTypeOf } from '@sluice/storage/protocol/dead-letter';
import { Fenced, type OwnEpoch } from '@sluice/storage/protocol/epoch';
import { nameOf, positionAfter } from '@sluice/storage/protocol/position';
import { type SourceMessage, toRowBatch } from '@sluice/storage/protocol/row-batch';
import type { StagedBatch, StagedStore, StoredRows } from '../batch/staged-batch.ts';
import type { WriterMetrics } from '../metrics.ts';
import type { BatchPace } from './batch-pace.ts';
import type { DeadLetterAlarm } from './dead-letter-alarm.ts';

const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;

export interface BatchLoopOptions {
  readonly store: StagedStore;
  readonly positions: Positions;
  /** Undefined where a server has its rows alone. */
  readonly replicas?: Pick<Replicas, 'keepFound' | 'requireDecided'> | undefined;
  readonly groupId: string;
  /** The size of a batch, in bytes of rows. */
  readonly bytesMax: number;
  readonly pace: Pick<BatchPace, 'stored'>;
  readonly alarm: DeadLetterAlarm;
  readonly metrics: WriterMetrics;
  readonly logger: Logger;
}

/**
 * Stores the messages of all partitions in common batches, one batch after the other. Each batch:
 *
 * 1. Its rows are stored, in pieces. A piece that fails is cut into halves, because it may have been too large.
 *    Where some of the rows were there already, among replicas, it is made sure that a second replica has these.
 * 2. The positions of its partitions are stored.
 *
 * After that the caller may commit the offsets. A failure is retried for as long as the assignment lasts: the rows are
 * safe in Kafka, and only their age grows.
 */
export class BatchLoop {
  readonly #options: BatchLoopOptions;
  readonly #size: BatchSize;
  readonly #gatherer: Gatherer<Assignment>;
  /** The pieces that have failed, until none of their statements is running any more, or may begin. */
  readonly #unended = new Set<StagedBatch>();

  constructor(options: BatchLoopOptions) {
    this.#options = options;
    this.#size = new BatchSize(options.bytesMax);
    this.#gatherer = new Gatherer(
      (messages, assignment) => inProcessSpan(messages, options.groupId, () => this.#storeBatch(messages, assignment)),
      options.bytesMax,
    );
  }

  /** Resolves when the messages are stored. @throws when their batch is given up */
  async add(messages: readonly SourceMessage[], assignment: Assignment): Promise<void> {
    await this.#gatherer.add(messages, assignment);
  }

  async #storeBatch(messages: readonly SourceMessage[], { epoch, signal }: Assignment): Promise<void> {
    const { positions, replicas, pace } = this.#options;
    if (!epoch) throw new Fenced('nothing may be stored before the take-over');
    await this.#endFailed(epoch, messages.length, signal);
    const startedAt = performance.now();
    let delays = backoff(FIRST_DELAY_MS, MAX_DELAY_MS);
    let hasFound = false;
    for (let done = 0; done < messages.length; ) {
      signal.throwIfAborted();
      const piece = this.#size.firstOf(messages.slice(done));
      const stored = await this.#storePiece(piece, epoch, signal);
      if (stored) {
        hasFound ||= stored.hasFound;
        done += piece.length;
        this.#size.worked();
        delays = backoff(FIRST_DELAY_MS, MAX_DELAY_MS);
      } else {
        this.#size.failed(piece);
        await sleep(delays.next().value, signal);
      }
    }
    if (hasFound && replicas) await this.#keepTrying(() => replicas.keepFound(), messages.length, signal);
    await this.#keepTrying(() => positions.store(positionsAfter(messages), epoch), messages.length, signal);
    pace.stored(startedAt, bytesOf(messages));
  }

  /** Returns what of the piece is stored; `undefined` if it failed, and none of its statements is running any more. */
  async #storePiece(
    piece: readonly SourceMessage[],
    epoch: OwnEpoch,
    signal: AbortSignal,
  ): Promise<StoredRows | undefined> {
    const { store, alarm, metrics } = this.#options;
    const staged = store.open(toRowBatch(piece), epoch, (deadLetters) => this.#onDeadLetters(deadLetters));
    const startedAt = performance.now();
    let stored: StoredRows;
    try {
      stored = await staged.store();
      alarm.count(stored.rows, 0);
      metrics.droppedRows.inc({ reason: 'user_deleted' }, stored.userDeleted);
    } catch (error) {
      if (error instanceof Fenced) {
        // Where this fails, the session expires by itself.
        staged.end(signal).catch(() => undefined);
        throw error;
      }
      this.#unended.add(staged);
      this.#onFailure(error, piece.length);
      await this.#endFailed(epoch, piece.length, signal);
      return undefined;
    }
    metrics.storedMessages.inc(piece.length);
    metrics.storedBytes.inc(bytesOf(piece));
    metrics.lastStored.note();
    metrics.batchDuration.observe((performance.now() - startedAt) / 1_000);
    return stored;
  }

  /**
   * Ends the pieces that have failed, before anything else is stored: their rows come again in other pieces. Also those of an
   * assignment that is over. Kafka may give a member that joins again the generation that it had, whose epoch does not
   * refuse the statements of the one before. What another server was sent waits until this writer stores there again.
   */
  async #endFailed({ server }: OwnEpoch, messages: number, signal: AbortSignal): Promise<void> {
    const { replicas } = this.#options;
    for (const staged of this.#unended) {
      if (staged.server !== server) continue;
      await this.#keepTrying(() => staged.end(signal), messages, signal);
      this.#unended.delete(staged);
      // Its rows are looked up next.
      if (replicas) await this.#keepTrying(() => replicas.requireDecided(), messages, signal);
    }
  }

  /** Retries until the work succeeds, the assignment ends, or the writer is fenced. */
  async #keepTrying(work: () => Promise<void>, messages: number, signal: AbortSignal): Promise<void> {
    await retry(work, {
      firstMs: FIRST_DELAY_MS,
      maxMs: MAX_DELAY_MS,
      signal,
      onFailure: (error) => this.#onFailure(error, messages),
    });
  }

  #onFailure(error: unknown, messages: number): void {
    if (error instanceof Fenced) throw error;
    this.#options.metrics.batchFailures.inc();
    this.#options.logger.warn({ reason: (error as Error).message, messages }, 'storing a batch failed; retrying');
  }

  #onDeadLetters(deadLetters: readonly DeadLetter[]): void {
    const { alarm, metrics, logger } = this.#options;
    // ingest-api has counted the calls that it rejected.
    const counted = deadLetters.filter(({ kind }) => kind !== 'rejected');
    metrics.deadLetters.inc(counted.length);
    const unstorable = counted.filter(({ reason }) => reason !== COLD_VOLUME_AWAY);
    const waiting = counted.length - unstorable.length;
    if (waiting > 0) {
      const what = 'the cold volume does not answer; late events wait in the dead letters, and are stored once it does';
      logger.warn({ events: waiting }, what);
    }
    if (unstorable.length === 0) return;
    // The reasons quote rows: what persons are in them is erased from the dead letters, and could not be from a log.
    const fields = { rows: unstorable.length, reason: errorTypeOf(unstorable[0]?.reason ?? '') };
    logger.error(
      fields,
      'ClickHouse cannot store some rows; they are kept. Show them with: npm run dead-letters -- list',
    );
    alarm.count(0, unstorable.length);
  }
}

/** Returns the positions of the partitions after these messages, which are in the order of their offsets. */
function positionsAfter(messages: readonly SourceMessage[]): NewPosition[] {
  return [...Map.groupBy(messages, nameOf).values()].flatMap((sources) => {
    const [oldest, newest] = [sources[0], sources.at(-1)];
    if (!oldest || !newest) return [];
    const { topic, partition, message } = newest;
    return { topic, partition, from: BigInt(oldest.message.offset), ...positionAfter(message) };
  });
}

/** The factor by which the size grows after each success. */
const GROWTH = 1.25;

/** How much is stored at once: half as much after a failure, more again after each success. */
export class BatchSize {
  readonly #bytesMax: number;
  #bytes: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#bytes = bytesMax;
  }

  /** Returns as many of the messages as may be stored at once, at least one. */
  firstOf(messages: readonly SourceMessage[]): readonly SourceMessage[] {
    let count = 0;
    for (let sum = 0; count < messages.length; count += 1) {
      sum += sizeOf(messages[count] as SourceMessage);
      if (count > 0 && sum > this.#bytes) break;
    }
    return messages.slice(0, count);
  }

  worked(): void {
    this.#bytes = Math.min(this.#bytesMax, this.#bytes * GROWTH);
  }

  failed(messages: readonly SourceMessage[]): void {
    this.#bytes = Math.max(1, bytesOf(messages) / 2);
  }
}

/** Returns the size of messages, in bytes of rows. */
export function bytesOf(messages: readonly SourceMessage[]): number {
  return messages.reduce((sum, message) => sum + sizeOf(message), 0);
}

function sizeOf({ message }: SourceMessage): number {
  return message.value?.length ?? 0;
}

/**
 * How long a batch waits for more messages before it is stored, in milliseconds: kafkajs delivers the messages of one
 * fetch partition by partition.
 */
const GATHER_MS = 5;

interface OpenBatch<Owner> {
  readonly owner: Owner;
  readonly messages: SourceMessage[];
  bytes: number;
  readonly stored: PromiseWithResolvers<void>;
}

/**
 * Gathers the messages of all partitions into batches and stores one batch after the other. While one is being stored,
 * the next one fills up to `bytesMax`. A batch holds messages of one owner only.
 */
export class Gatherer<Owner> {
  readonly #store: (messages: readonly SourceMessage[], owner: Owner) => Promise<void>;
  readonly #bytesMax: number;
  readonly #queue: OpenBatch<Owner>[] = [];
  #running = false;

  constructor(store: (messages: readonly SourceMessage[], owner: Owner) => Promise<void>, bytesMax: number) {
    this.#store = store;
    this.#bytesMax = bytesMax;
  }

  /** Resolves when the messages are stored. @throws when their batch is given up */
  add(messages: readonly SourceMessage[], owner: Owner): Promise<void> {
    const bytes = bytesOf(messages);
    let batch = this.#queue.at(-1);
    if (!batch || batch.owner !== owner || (batch.bytes > 0 && batch.bytes + bytes > this.#bytesMax)) {
      batch = { owner, messages: [], bytes: 0, stored: Promise.withResolvers() };
      this.#queue.push(batch);
    }
    batch.messages.push(...messages);
    batch.bytes += bytes;
    if (!this.#running) void this.#run();
    return batch.stored.promise;
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#queue.length > 0) {
      if (this.#queue.length === 1) await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
      const batch = this.#queue.shift();
      if (!batch) break;
      await this.#store(batch.messages, batch.owner).then(batch.stored.resolve, batch.stored.reject);
    }
    this.#running = false;
  }
}

/**
 * Stores a batch within a span that has links to the sends of its messages, and of which the statements of the batch are
 * children.
 */
async function inProcessSpan(
  messages: readonly SourceMessage[],
  groupId: string,
  store: () => Promise<void>,
): Promise<void> {
  const span = startSpan(messages, groupId);
  try {
    await context.with(trace.setSpan(context.active(), span), store);
  } catch (error) {
    markFailed(span, (error as Error).name);
    throw error;
  } finally {
    span.end();
  }
}

function startSpan(messages: readonly SourceMessage[], groupId: string): Span {
  const topics = new Set(messages.map(({ topic }) => topic));
  const { parent, links } = sharedWork(linksOf(messages));
  const attributes = {
    [ATTRIBUTE.messagingSystem]: 'kafka',
    [ATTRIBUTE.operation]: 'process',
    [ATTRIBUTE.operationType]: 'process',
    [ATTRIBUTE.group]: groupId,
    [ATTRIBUTE.messageCount]: messages.length,
    // The conventions have it only where it holds for every message.
    ...(topics.size === 1 && { [ATTRIBUTE.destination]: messages[0]?.topic ?? '' }),
  };
  const name = `process ${[...topics].sort().join(', ')}`;
  return tracer.startSpan(name, { kind: SpanKind.CONSUMER, links, attributes }, parent);
}

/** Returns a link to each send. Its attributes are those of the first message that came with it. */
function linksOf(messages: readonly SourceMessage[]): Link[] {
  const firsts = new Map<string, SourceMessage>();
  for (const source of messages) {
    const header = source.message.headers?.[TRACE_HEADER];
    if (header !== undefined && !firsts.has(String(header))) firsts.set(String(header), source);
  }
  return [...firsts].flatMap(([header, { topic, partition, message }]) => {
    const send = sendOf(header);
    const attributes = {
      [ATTRIBUTE.destination]: topic,
      [ATTRIBUTE.partition]: String(partition),
      [ATTRIBUTE.offset]: Number(message.offset),
    };
    return send ? [{ context: send, attributes }] : [];
  });
}
