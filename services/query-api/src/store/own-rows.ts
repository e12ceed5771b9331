import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { settingsOfFirst } from '@sluice/shared/clickhouse/settings';
import { Problem } from '@sluice/shared/http/problem';

// How query-api changes the rows that it writes itself, those of webhooks and of what the console keeps: no change undoes
// another one, rows that count no more are removed, and a failure is a problem that tells the client to try again.

/** How often a change is tried: each time it is not stored, another one was. */
const TRIES_MAX = 50;

/** Says which row of a register is replaced: that of an id with a version, its time in microseconds since 1970. */
export interface Replaced {
  readonly id: string;
  readonly version: number;
}

/** Returns the version of the row that replaces another one: higher, also when the clock was set back. */
export function versionAfter({ version }: Replaced): number {
  return Math.max(Date.now() * 1_000, version + 1);
}

/**
 * Inserts a row that replaces another one, unless something else has replaced that. So no change is made to a state that is no longer
 * the newest. Whether it was stored is read afterwards.
 *
 * @throws ClickHouse's errors
 */
export async function insertInPlaceOf(
  { id, version }: Replaced,
  client: ClickHouseClient,
  table: string,
  row: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
): Promise<void> {
  await client.insert({
    ...{ table, values: [row], format: 'JSONEachRow' },
    clickhouse_settings: settingsOfFirst(`${id} ${version}`),
    ...(signal && { abort_signal: signal }),
  });
}

/**
 * Changes what is stored, again and again until a read finds the change. Of changes at once each is made to what the others have left.
 *
 * @param change stores the change of a state in its place; returns false, and stores nothing, if the state has the change
 * @returns the state with the change; undefined if there is none
 * @throws what `read` and `change` throw
 */
export async function changeStored<State>(
  read: () => Promise<State | undefined>,
  change: (state: State) => Promise<boolean>,
): Promise<State | undefined> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const state = await read();
    if (state === undefined || !(await change(state))) return state;
  }
  throw new Error('others change the same all the time');
}

/** How long one run of the statements may take, in milliseconds. */
const RUN_MS_MAX = 60_000;

/** Removes rows that count no more, beside the requests that left them: one run at a time, however many of them there are. */
export class Purge {
  readonly #client: ClickHouseClient;
  readonly #statements: readonly string[];
  #running: Promise<void> | undefined;
  #isWanted = false;

  /** @param statements may be repeated; they run one after the other, until one fails */
  constructor(client: ClickHouseClient, statements: readonly string[]) {
    this.#client = client;
    this.#statements = statements;
  }

  /** Resolves when what is there now is removed, or that has failed: then the next one removes it. */
  async run(): Promise<void> {
    // A run that has begun may not see the newest rows.
    this.#isWanted = true;
    this.#running ??= this.#runAll().finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  async #runAll(): Promise<void> {
    while (this.#isWanted) {
      this.#isWanted = false;
      const abort_signal = AbortSignal.timeout(RUN_MS_MAX);
      try {
        for (const query of this.#statements) await this.#client.command({ query, abort_signal });
      } catch {
        return;
      }
    }
  }
}

/** Runs work with the same key one after the other. */
export class SerialQueue {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key);
    const running = (before ?? Promise.resolve()).then(work, work);
    this.#last.set(key, running);
    try {
      return await running;
    } finally {
      if (this.#last.get(key) === running) this.#last.delete(key);
    }
  }
}

/** Seconds. */
const RETRY_AFTER = 5;

/**
 * Returns the problem of a request whose state in ClickHouse could not be read or stored.
 *
 * @param store what cannot be reached
 */
export function unavailable(cause?: unknown, store = 'The event store'): Problem {
  const detail = `${store} cannot be reached; send the request again.`;
  return new Problem('store_unavailable', detail, { retryAfter: RETRY_AFTER, cause });
}

/** Returns what the work gives. @throws {Problem} those of the work, and `store_unavailable` for any other error */
export async function asUnavailable<Result>(work: Promise<Result>, store?: string): Promise<Result> {
  try {
    return await work;
  } catch (cause) {
    throw cause instanceof Problem ? cause : unavailable(cause, store);
  }
}
