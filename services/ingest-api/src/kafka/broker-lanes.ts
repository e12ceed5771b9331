import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import type { Logger } from '@sluice/shared/base/log';
import { backoff, sleep } from '@sluice/shared/base/retry';
import type { BatchSender, Bundle, SendFailure } from './batch-sender.ts';
import type { TopicPartition } from './topic-partition.ts';
import type { TopicWatch } from './topic-watch.ts';

/** The most that one send holds, in bytes. A small send keeps workspaces from waiting behind the rows of another. */
const SEND_BYTES_MAX = 2 * 1_024 * 1_024;

/** The errors of a record batch that is larger than the topic, or a segment of its log, may hold. */
const TOO_LARGE = ['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'];

export interface BrokerLanesOptions {
  readonly partitions: readonly TopicPartition[];
  readonly watch: Pick<TopicWatch, 'problems' | 'check'>;
  readonly sender: Pick<BatchSender, 'send'>;
  /** How long rows are gathered before a send, in milliseconds; with 0 only those of requests that have arrived together. */
  readonly lingerMs: number;
  readonly logger: Logger;
}

/** Partitions with the same leader and the same health share a lane. */
type Lane = Pick<TopicPartition, 'leader' | 'isFailing'>;

/**
 * Two lanes for each broker that leads partitions, one for the healthy partitions and one for those whose last send
 * failed. Each has one send at a time. While a send is under way the next one is gathered, and a broker that does not
 * respond delays only its own partitions. Partitions that fail are tried again with backoff until one send succeeds,
 * and do not delay the healthy ones.
 *
 * A send costs this process and Kafka as much as many rows. The more come, the more are gathered while a send is under way; a
 * client that waits for its response before it sends the next request would only be slower for a longer wait.
 *
 *     broker 1            [events 0, events 3] ──send──▶ acknowledged   [events 0] ──send──▶ …
 *     broker 1, failing   wait   [entities 2] ──send──▶ refused   wait longer   [entities 2] ──send──▶ …
 *     broker 2            [events 1] ──send──────────────────────────────▶ no response: it is failing now
 *     -1                  [events 2] waits until it has a leader
 */
export class BrokerLanes {
  readonly #options: BrokerLanesOptions;
  readonly #lanes = new Map<string, Promise<void>>();

  constructor(options: BrokerLanesOptions) {
    this.#options = options;
  }

  /**
   * Starts a lane for each broker that has rows waiting and no lane yet.
   *
   * @param targets the partitions that may have rows waiting since the last call; default all
   */
  schedule(targets: Iterable<TopicPartition> = this.#options.partitions): void {
    if (this.#options.watch.problems.length > 0) return;
    for (const target of targets) {
      // Constants: the partition may have changed lanes by the time that this one ends.
      const { leader, isFailing } = target;
      const key = `${leader} ${isFailing}`;
      if (!target.isWaiting || this.#lanes.has(key)) continue;
      const lane = this.#sendAll({ leader, isFailing }).finally(() => {
        this.#lanes.delete(key);
        this.schedule();
      });
      this.#lanes.set(key, lane);
    }
  }

  /** Resolves once nothing is being sent any more. */
  async finish(): Promise<void> {
    while (this.#lanes.size > 0) await Promise.all(this.#lanes.values());
  }

  /** Sends what waits for the partitions of one lane until nothing is left. */
  async #sendAll(lane: Lane): Promise<void> {
    const { watch, lingerMs } = this.#options;
    const isDelayed = lane.isFailing || lane.leader < 0;
    const delays = backoff(50, 1_000);
    let isBehind = false;
    while (this.#waitingIn(lane).length > 0) {
      if (isDelayed) await sleep(delays.next().value);
      else if (!isBehind) await (lingerMs > 0 ? sleep(lingerMs) : nextTurnOfEventLoop());
      // Another broker may lead the partitions by now.
      if (isDelayed) void watch.check();
      if (lane.leader < 0) continue;
      const bundles = takeBundles(this.#waitingIn(lane));
      isBehind = this.#waitingIn(lane).length > 0;
      await this.#sendBundles(bundles, lane);
    }
  }

  #waitingIn({ leader, isFailing }: Lane): TopicPartition[] {
    return this.#options.partitions.filter(
      (target) => target.leader === leader && target.isFailing === isFailing && target.isWaiting,
    );
  }

  /** What is not acknowledged waits again, unless its request has timed out. */
  async #sendBundles(bundles: readonly Bundle[], { leader, isFailing }: Lane): Promise<void> {
    if (bundles.length === 0) return;
    for (const { target } of bundles) target.isSending = true;
    const failures = await this.#options.sender.send(leader, bundles, isFailing ? 'failing' : 'healthy');
    for (const { target } of bundles) target.isSending = false;
    const failed = failures.filter((failure) => !this.#isTooLarge(failure));
    for (const { bundle } of failures) this.#addAgain(bundle);
    this.#recordHealth(bundles, failed);
    // Some of the partitions may have changed lanes.
    this.schedule();
  }

  /** Puts back what was not acknowledged, unless its request has ended. */
  #addAgain({ target, items }: Bundle): void {
    for (const item of items) if (!item.expired) target.queue.add(item);
  }

  /**
   * Whether the record batch was refused for its size, which is no failure of the partition. From then on smaller ones
   * are sent, and the request of rows that were refused alone ends.
   */
  #isTooLarge({ bundle: { target, items }, type }: SendFailure): boolean {
    if (type === undefined || !TOO_LARGE.includes(type)) return false;
    const { topic, partition, limit } = target;
    const { logger } = this.#options;
    const bytes = items.reduce((sum, { lines }) => sum + lines.length, 0);
    if (items.length > 1) {
      limit.bytesMax = Math.min(limit.bytesMax, Math.ceil(bytes / 2));
      logger.warn({ topic, partition, bytes }, 'Kafka refuses a record batch as too large; sending smaller ones');
    } else {
      items[0]?.refused();
      logger.error(
        { topic, partition, bytes },
        'Kafka refuses rows as too large: raise max.message.bytes of the topic',
      );
    }
    return true;
  }

  /** Decides in which lane each partition goes on. */
  #recordHealth(bundles: readonly Bundle[], failed: readonly SendFailure[]): void {
    const { logger } = this.#options;
    const failing = failed.filter(({ bundle }) => !bundle.target.isFailing);
    const unacknowledged = new Set(failed.map(({ bundle }) => bundle));
    const recovered = bundles.filter((bundle) => bundle.target.isFailing && !unacknowledged.has(bundle));
    for (const { bundle } of failing) bundle.target.isFailing = true;
    for (const { target } of recovered) target.isFailing = false;
    for (const [reason, ofReason] of Map.groupBy(failing, (failure) => failure.reason)) {
      const partitions = namesOf(ofReason.map(({ bundle }) => bundle));
      logger.warn({ partitions, reason }, 'sending to Kafka failed; sending again');
    }
    if (recovered.length > 0) logger.info({ partitions: namesOf(recovered) }, 'sending to Kafka succeeds again');
  }
}

function namesOf(bundles: readonly Bundle[]): string[] {
  return bundles.map(({ target: { topic, partition } }) => `${topic}/${partition}`);
}

function takeBundles(targets: readonly TopicPartition[]): Bundle[] {
  const bytesMax = SEND_BYTES_MAX / targets.length;
  return targets.map((target) => ({ target, items: target.queue.take(Math.min(target.limit.bytesMax, bytesMax)) }));
}
