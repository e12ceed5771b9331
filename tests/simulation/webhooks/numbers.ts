import type { SourcesOptions } from '@sluice/query-api/alerts/alert-source';
import { Problem } from '@sluice/shared/http/problem';
import type { Network } from '../world/network.ts';
import type { Random } from '../world/random.ts';
import type { VirtualTime } from '../world/virtual-time.ts';

/** How long a read may take, in milliseconds. */
const READ_MS_MAX = 5_000;

/** In a second of the world a minute of the log passes, so that a window of alerts ends. */
const LOG_PER_WORLD = 60;
const MINUTE_MS = 60_000;

/** What an alert of the simulation watches, and what it is compared with. */
export const WATCHED = {
  name: 'Watched',
  view: 'v',
  condition: { is: 'above', threshold: 5 },
  window: '1m',
  for: 1,
} as const;

/** The number that alerts watch, and the time of the log, in place of ClickHouse's. Each minute it is high or low. */
export class Numbers {
  readonly #time: VirtualTime;
  readonly #network: Network;
  readonly #random: Random;
  readonly #values = new Map<number, number>();
  /** How likely the number cannot be read. */
  failures = 0;
  /** Whether it is always high from now on. */
  isHigh = false;

  constructor(time: VirtualTime, network: Network, random: Random) {
    this.#time = time;
    this.#network = network;
    this.#random = random;
  }

  /** Returns the number of the minute that ends at a time. It stays the same. */
  valueAt(endMs: number): number {
    const known = this.#values.get(endMs) ?? (this.isHigh || this.#random.isTrue(0.4) ? 10 : 0);
    this.#values.set(endMs, known);
    return known;
  }

  /** What sources of alerts read. */
  get read(): Pick<SourcesOptions, 'clock' | 'numbers'> {
    const ask = async () => {
      await this.#network.request('ClickHouse', 'look up', async () => undefined, READ_MS_MAX);
      if (this.#random.isTrue(this.failures))
        throw new Problem('store_unavailable', 'The event store cannot be reached.');
    };
    const clock = {
      read: async () => {
        await ask();
        const nowMs = Math.floor(this.#time.nowMs * LOG_PER_WORLD) + MINUTE_MS;
        return { nowMs, throughMs: nowMs };
      },
    };
    const numbers = {
      view: async () => ({ name: 'View', report: 'series', parameters: {} }),
      over: async (_workspace: string, _view: unknown, { endMs }: { readonly endMs: number }) => {
        await ask();
        return this.valueAt(endMs);
      },
    };
    return { clock, numbers } as unknown as Pick<SourcesOptions, 'clock' | 'numbers'>;
  }
}
