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

/** A table of what workspaces set. The newest row of a workspace is in force. */
export interface SettingTable {
  readonly name: string;
  /** The column of what is set. */
  readonly value: string;
  /** The column of when it was set: a `DateTime64(6)`. */
  readonly time: string;
}

/** How long a statement about a setting may take, in milliseconds. */
const SETTING_MS_MAX = 10_000;

/** What workspaces set, in a table of its own. Its methods throw Problems. */
export class Setting<Value extends string | readonly string[]> {
  readonly #client: ClickHouseClient;
  readonly #table: SettingTable;
  readonly #store: string;

  /**
   * @param client with the account that stores what the console keeps
   * @param store what cannot be reached, where it cannot
   */
  constructor(client: ClickHouseClient, table: SettingTable, store: string) {
    this.#client = client;
    this.#table = table;
    this.#store = store;
  }

  /** Returns what is in force; undefined: nothing was set. */
  async of(workspace: string): Promise<Value | undefined> {
    const { name, value, time } = this.#table;
    const query = `
SELECT ${value} AS value
FROM ${name}
WHERE workspace_id = {workspace:String}
ORDER BY ${time} DESC, value DESC
LIMIT 1`;
    const read = async () => {
      const result = await this.#client.query({
        query,
        query_params: { workspace },
        format: 'JSONEachRow',
        ...limit(),
      });
      return (await result.json<{ value: Value }>())[0]?.value;
    };
    return await asUnavailable(read(), this.#store);
  }

  /** The new time is above the stored ones, also after the clock was set back. */
  async put(workspace: string, newest: Value): Promise<void> {
    const { name, value, time } = this.#table;
    const type = typeof newest === 'string' ? 'String' : 'Array(String)';
    const query = `
INSERT INTO ${name} (workspace_id, ${value}, ${time})
SELECT {workspace:String}, {newest:${type}}, greatest(now64(6), max(${time}) + toIntervalMicrosecond(1))
FROM ${name}
WHERE workspace_id = {workspace:String}`;
    await asUnavailable(this.#client.command({ query, query_params: { workspace, newest }, ...limit() }), this.#store);
  }
}

function limit() {
  return { abort_signal: AbortSignal.timeout(SETTING_MS_MAX) };
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
