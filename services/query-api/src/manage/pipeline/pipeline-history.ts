import type { ServicesState } from './pipeline-state.ts';

const SAMPLE_EVERY_MS = 60_000;

/** An hour of them. */
const SAMPLES_MAX = 60;

/** What the services said at a time; `null` where it is not known. */
export interface PipelineSample {
  readonly at: string;
  /** Since the sample before. */
  readonly acceptedPerSecond: number | null;
  readonly storedPerSecond: number | null;
  readonly lagMessages: number | null;
  readonly lagSeconds: number | null;
  readonly haltedPartitions: number | null;
}

interface Reading {
  readonly atMs: number;
  readonly state: Pick<ServicesState, 'accepted' | 'writers' | 'lag'>;
}

/**
 * Keeps what the services said over the last hour, in memory: a read each minute, also while nobody looks. The first one comes
 * after a minute, when the services that are started together are ready.
 */
export class PipelineHistory {
  readonly #read: () => Promise<Reading['state']>;
  readonly #now: () => number;
  readonly #readings: Reading[] = [];
  #timer: NodeJS.Timeout | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(read: () => Promise<Reading['state']>, now: () => number = Date.now) {
    this.#read = read;
    this.#now = now;
  }

  start(): void {
    this.#timer = setInterval(() => {
      // Without a sample, the next one has the rates of two minutes.
      this.#last = this.sample().catch(() => undefined);
    }, SAMPLE_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#last;
  }

  /** Reads the services once. */
  async sample(): Promise<void> {
    const { accepted, writers, lag } = await this.#read();
    this.#readings.push({ atMs: this.#now(), state: { accepted, writers, lag } });
    // One more than there are samples: the first rate is that since the reading before.
    if (this.#readings.length > SAMPLES_MAX + 1) this.#readings.shift();
  }

  /** Returns the samples, the oldest first. */
  samples(): readonly PipelineSample[] {
    return this.#readings.map((reading, index) => sampleOf(reading, this.#readings[index - 1])).slice(-SAMPLES_MAX);
  }
}

function sampleOf({ atMs, state }: Reading, before: Reading | undefined): PipelineSample {
  const seconds = before === undefined ? 0 : (atMs - before.atMs) / 1_000;
  return {
    at: new Date(atMs).toISOString(),
    acceptedPerSecond: rateOf(state.accepted?.events, before?.state.accepted?.events, seconds),
    storedPerSecond: rateOf(state.writers?.storedMessages, before?.state.writers?.storedMessages, seconds),
    lagMessages: state.lag?.messages ?? null,
    lagSeconds: state.lag?.seconds ?? null,
    haltedPartitions: state.writers?.haltedPartitions ?? null,
  };
}

/** A service that has started again counts from 0. */
function rateOf(now: number | undefined, before: number | undefined, seconds: number): number | null {
  if (now === undefined || before === undefined || seconds <= 0 || now < before) return null;
  return (now - before) / seconds;
}
