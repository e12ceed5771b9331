import { clockTopicName, ensureTopics } from '@sluice/shared/kafka/topics';
import type { Component } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { retry, sleep } from '@sluice/shared/retry';
import type { Kafka, RecordMetadata } from 'kafkajs';
import { Gauge, type Registry } from 'prom-client';
import type { IngestConfig } from './config.ts';

/** How often the clocks are compared, in milliseconds. */
const COMPARE_MS = 30_000;

/** How often this clock is compared with the time that has really passed, in milliseconds. */
const JUMP_CHECK_MS = 250;

/** Compares this machine's clock with Kafka's. */
export interface BrokerClock extends Component {
  /** Whether the clocks have been compared since the process started; before that nothing can be accepted. */
  readonly isCompared: boolean;
  /** Why the versions that this clock gives would be wrong; `undefined` when they are right. */
  fault(): string | undefined;
}

export interface BrokerClockOptions {
  readonly kafka: Kafka;
  readonly config: IngestConfig;
  readonly logger: Logger;
  readonly registry: Registry;
}

/**
 * Versions decide what a deletion hides and which change wins, and they come from the clocks of all ingest-apis. Each
 * therefore compares its clock with Kafka's: it sends an empty record to a topic whose records the broker stamps, and
 * the broker's time comes back with the acknowledgement. A clock that is set while the process runs is noticed at once,
 * because the monotonic clock does not follow, and counts for nothing until it has been compared again.
 */
export function createBrokerClock({ kafka, config, logger, registry }: BrokerClockOptions): BrokerClock {
  const topic = clockTopicName(config);
  const producer = kafka.producer({ allowAutoTopicCreation: false, idempotent: false, retry: { retries: 1 } });
  const stopping = new AbortController();
  /** By how much this clock is ahead, in milliseconds, as of the last comparison. */
  let aheadMs: number | undefined;
  /** What the wall clock shows beyond the monotonic one, as of the last comparison. */
  let offsetMs = 0;
  let isWrong = false;
  let running: Promise<void> | undefined;
  new Gauge({
    name: 'sluice_ingest_clock_ahead_seconds',
    help: "By how much this machine's clock is ahead of Kafka's; negative when it is behind.",
    registers: [registry],
    collect() {
      if (aheadMs !== undefined) this.set(aheadMs / 1_000);
    },
  });

  async function compare(): Promise<void> {
    const before = Date.now();
    const [record]: RecordMetadata[] = await producer.send({ topic, acks: -1, messages: [{ value: '' }] });
    const after = Date.now();
    const brokerMs = Number(record?.logAppendTime ?? -1);
    if (brokerMs < 0) throw new Error(`topic ${topic} must have message.timestamp.type=LogAppendTime`);
    // Somewhere in between the broker looked at its clock: what cannot be told counts in favour of this one.
    aheadMs = brokerMs < before ? before - brokerMs : brokerMs > after ? after - brokerMs : 0;
    offsetMs = wallOffsetMs();
    const wrong = Math.abs(aheadMs) > config.CLOCK_SKEW_MS_MAX;
    if (wrong && !isWrong)
      logger.error({ aheadMs }, "this machine's clock is wrong: nothing is accepted until it is set");
    if (!wrong && isWrong) logger.info({ aheadMs }, "this machine's clock is right again");
    isWrong = wrong;
  }

  async function compareUntilDone(): Promise<void> {
    await retry(compare, {
      firstMs: 200,
      maxMs: 5_000,
      signal: stopping.signal,
      onFailure: (error) =>
        logger.warn({ reason: (error as Error).message }, "the clocks cannot be compared: Kafka's is out of reach"),
    });
  }

  async function run(): Promise<void> {
    const options = { firstMs: 200, maxMs: 5_000, signal: stopping.signal, onFailure: () => undefined };
    await retry(() => ensureTopics(kafka, config), options);
    await retry(() => producer.connect(), options);
    for (;;) {
      await compareUntilDone();
      const until = performance.now() + COMPARE_MS;
      while (performance.now() < until && !hasJumped()) {
        await sleep(JUMP_CHECK_MS, stopping.signal);
        stopping.signal.throwIfAborted();
      }
    }
  }

  function hasJumped(): boolean {
    return Math.abs(wallOffsetMs() - offsetMs) > config.CLOCK_SKEW_MS_MAX / 2;
  }

  return {
    name: 'clock',
    async start() {
      running ??= run().catch((error) => {
        if (!stopping.signal.aborted) throw error;
      });
    },
    get isCompared() {
      return aheadMs !== undefined;
    },
    fault() {
      if (aheadMs === undefined) return "the clock has not been compared with Kafka's yet";
      if (hasJumped()) return "the clock was set and has not been compared with Kafka's since";
      if (!isWrong) return undefined;
      const seconds = (Math.abs(aheadMs) / 1_000).toFixed(1);
      return `the clock is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} Kafka's`;
    },
    async stop() {
      stopping.abort();
      await running;
      await producer.disconnect();
    },
  };
}

function wallOffsetMs(): number {
  return Date.now() - performance.now();
}
