import { aheadOf } from '@sluice/shared/base/clock-comparison';
import type { Logger } from '@sluice/shared/base/log';
import { atMost, retry, sleep } from '@sluice/shared/base/retry';
import { CLOCK_INTERVAL_MS, clockTopicName, ensureTopics, withoutAppendTime } from '@sluice/shared/kafka/topics';
import type { Component } from '@sluice/shared/service/lifecycle';
import type { Kafka, Producer, RecordMetadata } from 'kafkajs';
import type { IngestConfig } from '../config.ts';
import type { IngestMetrics } from '../metrics.ts';

/**
 * How old a comparison may be, in milliseconds. Two clocks that are only slewed, by 500 ppm each at most, come apart by 0.3 s
 * in that time.
 */
const COMPARISON_AGE_MS_MAX = 10 * CLOCK_INTERVAL_MS;

/** How long a stop waits for Kafka, in milliseconds. */
const STOP_MS_MAX = 2_000;

/** How often this clock is compared with the monotonic clock, in milliseconds. */
const JUMP_CHECK_INTERVAL_MS = 250;

/** How many failures in a row are no warning: on a busy machine, a new topic has no leader for a second or two. */
const EXPECTED_FAILURES_MAX = 4;

/** Kafka has acknowledged a record without the time at which it was appended. */
class NoAppendTime extends Error {
  override readonly name = 'NoAppendTime';
}

/** The clocks of this machine, in milliseconds. */
export interface Clocks {
  /** Since 1970. */
  wallMs(): number;
  /** Since any time. It is never set. */
  monotonicMs(): number;
}

const SYSTEM_CLOCKS: Clocks = { wallMs: () => Date.now(), monotonicMs: () => performance.now() };

export interface BrokerClockOptions {
  readonly kafka: Kafka;
  readonly config: IngestConfig;
  readonly metrics: Pick<IngestMetrics, 'clockAhead' | 'clockAheadLimit'>;
  readonly logger: Logger;
  /** Default: those of the system. */
  readonly clocks?: Clocks;
}

/**
 * Compares this machine's clock with Kafka's. Versions come from the clocks of all ingest-apis, and they decide what a
 * deletion hides and which change wins, so the clocks must agree.
 *
 * To compare, it sends an empty record to a topic whose records the broker stamps: the acknowledgement returns the
 * broker's time. A clock that is set while the process runs is noticed by the next request, because the monotonic clock
 * does not follow it; it is not trusted until the next comparison. Neither is one that could not be compared for minutes.
 * Requests that were admitted before go on with the clock as it was: their bodies may take long.
 */
export class BrokerClock implements Component {
  readonly name = 'clock';
  readonly #options: BrokerClockOptions;
  readonly #clocks: Clocks;
  readonly #topic: string;
  readonly #producer: Producer;
  readonly #stopping = new AbortController();
  /** By how much this clock is ahead, in milliseconds, as of the last comparison. */
  #aheadMs: number | undefined;
  /** When the last comparison began, by the monotonic clock. */
  #comparedAtMs = Number.NEGATIVE_INFINITY;
  /** The wall clock minus the monotonic one, in milliseconds, as of the last comparison. */
  #offsetMs = 0;
  /** The same, as of the last comparison in which this clock was right. */
  #rightOffsetMs: number | undefined;
  #isWrong = false;
  /** What Kafka's acknowledgement of the last record lacked; `undefined` when it had the time of the broker. */
  #lack: string | undefined;
  #running: Promise<void> | undefined;

  constructor(options: BrokerClockOptions) {
    this.#options = options;
    this.#clocks = options.clocks ?? SYSTEM_CLOCKS;
    this.#topic = clockTopicName(options.config);
    this.#producer = options.kafka.producer({
      allowAutoTopicCreation: false,
      idempotent: false,
      retry: { retries: 1 },
    });
    options.metrics.clockAheadLimit.set(options.config.CLOCK_SKEW_MS_MAX / 1_000);
    options.metrics.clockAhead.sampleFrom(() => (this.#aheadMs === undefined ? undefined : this.#aheadMs / 1_000));
  }

  /** Whether the clocks have been compared in the last minutes. Otherwise nothing can be accepted. */
  get isCompared(): boolean {
    return this.#clocks.monotonicMs() - this.#comparedAtMs <= COMPARISON_AGE_MS_MAX;
  }

  /** Returns why versions from this clock would be wrong; `undefined` when they are right. */
  problem(): string | undefined {
    // A comparison holds for minutes, also when later ones fail.
    if (this.#lack !== undefined && !this.isCompared) return this.#lack;
    if (this.#aheadMs === undefined) return "the clock has not been compared with Kafka's yet";
    if (!this.isCompared)
      return `the clock has not been compared with Kafka's for ${COMPARISON_AGE_MS_MAX / 60_000} minutes`;
    if (this.#hasJumped()) return "the clock was set and has not been compared with Kafka's since";
    if (!this.#isWrong) return undefined;
    const seconds = (Math.abs(this.#aheadMs) / 1_000).toFixed(1);
    return `the clock is ${seconds} s ${this.#aheadMs > 0 ? 'ahead of' : 'behind'} Kafka's`;
  }

  /** Returns the time in milliseconds since 1970. Where this clock was set since it last was right, the time is as if it were not. */
  nowMs(): number {
    const wallMs = this.#clocks.wallMs();
    if (this.#rightOffsetMs === undefined) return wallMs;
    // It may be a millisecond behind: the wall clock had no fractions when they were compared.
    const unsetMs = Math.floor(this.#clocks.monotonicMs() + this.#rightOffsetMs);
    return Math.abs(wallMs - unsetMs) > this.#jumpMs ? unsetMs : wallMs;
  }

  async start(): Promise<void> {
    this.#running ??= this.#run().catch((error) => {
      if (!this.#stopping.signal.aborted) throw error;
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await atMost(STOP_MS_MAX, this.#end());
  }

  async #end(): Promise<void> {
    await this.#running;
    await this.#producer.disconnect();
  }

  async #run(): Promise<void> {
    const { kafka, config } = this.#options;
    const { signal } = this.#stopping;
    const options = { firstMs: 200, maxMs: 5_000, signal, onFailure: () => undefined };
    await retry(() => ensureTopics(kafka, config), options);
    await retry(() => this.#producer.connect(), options);
    for (;;) {
      await this.#compareUntilDone();
      const until = this.#clocks.monotonicMs() + CLOCK_INTERVAL_MS;
      while (this.#clocks.monotonicMs() < until && !this.#hasJumped()) {
        await sleep(JUMP_CHECK_INTERVAL_MS, signal);
        signal.throwIfAborted();
      }
    }
  }

  async #compareUntilDone(): Promise<void> {
    const { logger } = this.#options;
    let failures = 0;
    await retry(() => this.#compare(), {
      firstMs: 200,
      maxMs: 5_000,
      signal: this.#stopping.signal,
      onFailure: (error) => {
        if (error instanceof NoAppendTime) {
          // It lasts until a person does something.
          if (this.#lack === undefined) logger.error(error.message);
          this.#lack = error.message;
          return;
        }
        failures += 1;
        const level = failures > EXPECTED_FAILURES_MAX ? 'warn' : 'info';
        logger[level]({ reason: (error as Error).message }, "the clock cannot be compared with Kafka's; retrying");
      },
    });
  }

  async #compare(): Promise<void> {
    const startedAtMs = this.#clocks.monotonicMs();
    // A clock that is set meanwhile is noticed afterwards.
    const offsetMs = this.#wallOffsetMs();
    const [record]: RecordMetadata[] = await this.#producer.send({
      topic: this.#topic,
      acks: -1,
      messages: [{ value: '' }],
    });
    const tookMs = this.#clocks.monotonicMs() - startedAtMs;
    const brokerMs = Number(record?.logAppendTime ?? -1);
    if (brokerMs < 0) throw new NoAppendTime(withoutAppendTime(this.#topic));
    this.#lack = undefined;
    if (tookMs > this.#options.config.CLOCK_SKEW_MS_MAX) throw new Error(`the response took ${tookMs.toFixed(0)} ms`);
    this.#aheadMs = aheadOf({ beforeMs: Math.floor(startedAtMs + offsetMs), tookMs, theirMs: brokerMs });
    this.#offsetMs = offsetMs;
    this.#comparedAtMs = startedAtMs;
    this.#record(this.#aheadMs);
    if (!this.#isWrong) this.#rightOffsetMs = offsetMs;
  }

  #record(aheadMs: number): void {
    const { config, logger } = this.#options;
    const wasWrong = this.#isWrong;
    this.#isWrong = Math.abs(aheadMs) > config.CLOCK_SKEW_MS_MAX;
    if (this.#isWrong && !wasWrong) {
      logger.error({ aheadMs }, "this machine's clock is wrong; set it: until then every request with a key gets 503");
    }
    if (!this.#isWrong && wasWrong) logger.info({ aheadMs }, "this machine's clock is right again");
  }

  #hasJumped(): boolean {
    return Math.abs(this.#wallOffsetMs() - this.#offsetMs) > this.#jumpMs;
  }

  /** By how much a clock that was set differs from one that only went on, in milliseconds. */
  get #jumpMs(): number {
    return this.#options.config.CLOCK_SKEW_MS_MAX / 2;
  }

  #wallOffsetMs(): number {
    return this.#clocks.wallMs() - this.#clocks.monotonicMs();
  }
}
