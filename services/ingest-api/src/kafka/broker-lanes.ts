import { backoff, sleep } from '@sluice/shared/retry';
import type { BatchSender, Bundle } from './batch-sender.ts';
import type { LoadMeter } from './load-meter.ts';
import type { TopicPartition } from './topic-partition.ts';
import type { TopicWatch } from './topic-watch.ts';

/** The most that one send holds, in bytes. A small send keeps workspaces from waiting behind the rows of another. */
const SEND_BYTES_MAX = 2 * 1_024 * 1_024;

/** The most that one send holds for one partition, in bytes; see `ROW_BYTES_MAX`. */
const PARTITION_BYTES_MAX = 900 * 1_024;

export interface BrokerLanesOptions {
  readonly partitions: readonly TopicPartition[];
  readonly watch: Pick<TopicWatch, 'faults' | 'check'>;
  readonly sender: Pick<BatchSender, 'send'>;
  /** How long rows are gathered at most before they are sent, in milliseconds. */
  readonly lingerMs: number;
  readonly load: Pick<LoadMeter, 'share'>;
}

/**
 * One lane for each broker that leads partitions, with one send at a time. While a send is under way the next one is
 * gathered, and a broker that does not respond delays only its own partitions.
 *
 * A send costs this process and Kafka as much as many rows. So the busier the process is, the longer rows are gathered:
 * not at all when it is idle, and `lingerMs` when it does nothing but work.
 *
 *     broker 1   [events 0, events 3] ──send──▶ acknowledged   [events 0] ──send──▶ …
 *     broker 2   [events 1] ──send──────────────────────────────▶ left out: waits again, perhaps for another broker
 *     -1         [events 2] waits until it has a leader
 */
export class BrokerLanes {
  readonly #options: BrokerLanesOptions;
  readonly #lanes = new Map<number, Promise<void>>();

  constructor(options: BrokerLanesOptions) {
    this.#options = options;
  }

  /**
   * Starts a lane for each broker that has rows waiting and no lane yet.
   *
   * @param targets the partitions that may have rows waiting since the last call; default all
   */
  schedule(targets: Iterable<TopicPartition> = this.#options.partitions): void {
    if (this.#options.watch.faults.length > 0) return;
    for (const target of targets) {
      // A constant: the partition may have another leader by the time that the lane ends.
      const { leader } = target;
      if (!target.isWaiting || this.#lanes.has(leader)) continue;
      const lane = this.#sendAll(leader).finally(() => {
        this.#lanes.delete(leader);
        this.schedule();
      });
      this.#lanes.set(leader, lane);
    }
  }

  /** Resolves once nothing is being sent any more. */
  async finish(): Promise<void> {
    while (this.#lanes.size > 0) await Promise.all(this.#lanes.values());
  }

  /** Sends what waits for the partitions of one broker until nothing is left. */
  async #sendAll(leader: number): Promise<void> {
    const delays = backoff(50, 1_000);
    let isBehind = false;
    for (let targets = this.#waitingFor(leader); targets.length > 0; targets = this.#waitingFor(leader)) {
      if (!isBehind) await sleep(this.#options.lingerMs * this.#options.load.share());
      const bundles = takeBundles(this.#waitingFor(leader));
      isBehind = this.#waitingFor(leader).length > 0;
      if (await this.#sendBundles(bundles, leader)) continue;
      // Another broker may lead the partitions by now.
      void this.#options.watch.check();
      await sleep(delays.next().value);
    }
  }

  #waitingFor(leader: number): TopicPartition[] {
    return this.#options.partitions.filter((target) => target.leader === leader && target.isWaiting);
  }

  /** Returns whether everything was acknowledged. What was not waits again, unless its request has timed out. */
  async #sendBundles(bundles: readonly Bundle[], leader: number): Promise<boolean> {
    for (const { target } of bundles) target.isSending = true;
    const rest = leader < 0 ? bundles : await this.#options.sender.send(bundles);
    for (const { target } of bundles) target.isSending = false;
    for (const { target, items } of rest) {
      for (const item of items) if (!item.expired) target.queue.add(item);
    }
    // Some of the partitions may have moved to a broker that is idle.
    this.schedule();
    return rest.length === 0;
  }
}

function takeBundles(targets: readonly TopicPartition[]): Bundle[] {
  const bytesMax = Math.min(PARTITION_BYTES_MAX, SEND_BYTES_MAX / targets.length);
  return targets.map((target) => ({ target, items: target.queue.take(bytesMax) }));
}
