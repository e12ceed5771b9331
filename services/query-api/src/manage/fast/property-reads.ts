import { randomUUID } from 'node:crypto';
import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Component } from '@sluice/shared/service/lifecycle';
import { asUnavailable } from '../../store/store.ts';

/** How many properties of a workspace are counted on a day: those for which most was read. */
const NAMES_MAX = 32;

/** How many of all workspaces together. */
const ALL_NAMES_MAX = 50_000;

/** How often the counts are stored, in milliseconds. A process that is killed loses those since then. */
const STORE_MS = 60_000;

/** How many rows one statement stores, each of which has up to some 20 kB. */
const ROWS_MAX = 500;

/** How long a statement may take, in milliseconds. */
const STATEMENT_MS_MAX = 10_000;

/** How many properties are proposed at most. */
export const PROPOSED_MAX = 50;

const READS = `
SELECT name, sum(count) AS reads, sum(size) AS bytes
FROM (
  SELECT names, reads AS counts, bytes AS sizes
  FROM console_property_reads FINAL
  WHERE workspace_id = {workspace:String} AND day > {day:Date} - 7 AND NOT (day = {day:Date} AND process = {process:UUID})
)
ARRAY JOIN names AS name, counts AS count, sizes AS size
GROUP BY name
ORDER BY bytes DESC, name
LIMIT ${PROPOSED_MAX + NAMES_MAX}`;

/** What was read of the text of a property. */
export interface PropertyRead {
  readonly name: string;
  readonly reads: number;
  /** A statement that reads several properties counts for each of them with an equal share of its bytes. */
  readonly bytes: number;
}

/** The counts of a workspace on a day. */
interface Counts {
  readonly byName: Map<string, Omit<PropertyRead, 'name'>>;
  /** Whether all of them are stored. */
  isStored: boolean;
}

/**
 * Counts what reports read of the text of properties, for a week. A process counts in memory, and each minute stores what it has counted
 * since midnight, in a row of its own for each workspace. So however many properties are asked for, and however often, there are as many rows
 * as workspaces, days and starts of processes.
 */
export class PropertyReads implements Component {
  readonly name = 'reads of properties';
  readonly #client: ClickHouseClient;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #process = randomUUID();
  readonly #stopping = new AbortController();
  #day = '';
  #workspaces = new Map<string, Counts>();
  /** How many properties are counted of all workspaces. */
  #names = 0;
  #running: Promise<void> | undefined;

  /** @param client with the account that stores what the console keeps */
  constructor(client: ClickHouseClient, logger: Logger, now: () => number = Date.now) {
    this.#client = client;
    this.#logger = logger;
    this.#now = now;
  }

  async start(): Promise<void> {
    this.#running ??= this.#run();
  }

  /** Stores what was counted last. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** Counts a statement that has read these properties, and so many bytes for all of them. */
  readonly note = (workspace: string, names: readonly string[], bytes: number): void => {
    this.#beginDay();
    const counts = this.#workspaces.get(workspace) ?? { byName: new Map(), isStored: true };
    this.#workspaces.set(workspace, counts);
    for (const name of names) this.#add(counts, name, bytes / names.length);
  };

  /** Returns what was read of the text of properties in the last seven days, the most bytes first. @throws {Problem} `store_unavailable` */
  async of(workspace: string): Promise<readonly PropertyRead[]> {
    this.#beginDay();
    const stored = await asUnavailable(this.#stored(workspace), 'The server that stores what was read');
    const sums = new Map(stored.map(({ name, reads, bytes }) => [name, { reads, bytes }]));
    for (const [name, { reads, bytes }] of this.#workspaces.get(workspace)?.byName ?? []) {
      const before = sums.get(name) ?? { reads: 0, bytes: 0 };
      sums.set(name, { reads: before.reads + reads, bytes: before.bytes + Math.round(bytes) });
    }
    const all = [...sums].map(([name, sum]) => ({ name, ...sum }));
    return all.sort((one, other) => other.bytes - one.bytes).slice(0, PROPOSED_MAX);
  }

  /** Returns what other processes have counted, and this one on other days. @throws ClickHouse's errors */
  async #stored(workspace: string): Promise<readonly PropertyRead[]> {
    const query_params = { workspace, day: this.#day, process: this.#process };
    const abort_signal = AbortSignal.timeout(STATEMENT_MS_MAX);
    const result = await this.#client.query({ query: READS, query_params, format: 'JSONEachRow', abort_signal });
    return await result.json<PropertyRead>();
  }

  /** Of a day that is over, what is not stored yet is of a minute at most: it is forgotten. */
  #beginDay(): void {
    const day = new Date(this.#now()).toISOString().slice(0, 10);
    if (day === this.#day) return;
    this.#day = day;
    this.#workspaces = new Map();
    this.#names = 0;
  }

  #add(counts: Counts, name: string, bytes: number): void {
    const known = counts.byName.get(name);
    if (!known && !this.#makeRoom(counts, bytes)) return;
    counts.byName.set(name, { reads: (known?.reads ?? 0) + 1, bytes: (known?.bytes ?? 0) + bytes });
    counts.isStored = false;
  }

  /** Returns whether another property may be counted. It takes the place of the one for which least was read. */
  #makeRoom({ byName }: Counts, bytes: number): boolean {
    if (byName.size < NAMES_MAX && this.#names < ALL_NAMES_MAX) {
      this.#names += 1;
      return true;
    }
    let least: [string, number] | undefined;
    for (const [name, read] of byName) if (read.bytes < (least?.[1] ?? bytes)) least = [name, read.bytes];
    return least !== undefined && byName.delete(least[0]);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await sleep(STORE_MS, signal);
      await this.store().catch((error: Error) => {
        this.#logger.warn({ reason: error.message }, 'what was read of properties is not stored; retrying');
      });
    }
  }

  /** Stores what was counted since it was stored last. @throws ClickHouse's errors */
  async store(): Promise<void> {
    const changed = [...this.#workspaces].filter(([, { isStored }]) => !isStored);
    const day = this.#day;
    for (let from = 0; from < changed.length; from += ROWS_MAX) {
      const some = changed.slice(from, from + ROWS_MAX);
      const values = some.map(([workspace_id, { byName }]) => ({
        ...{ workspace_id, day, process: this.#process, names: [...byName.keys()] },
        reads: [...byName.values()].map(({ reads }) => reads),
        bytes: [...byName.values()].map(({ bytes }) => Math.round(bytes)),
      }));
      for (const [, counts] of some) counts.isStored = true;
      await this.#insert(values).catch((error) => {
        for (const [, counts] of some) counts.isStored = false;
        throw error;
      });
    }
  }

  async #insert(values: readonly object[]): Promise<void> {
    const abort_signal = AbortSignal.timeout(STATEMENT_MS_MAX);
    await this.#client.insert({ table: 'console_property_reads', values, format: 'JSONEachRow', abort_signal });
  }
}
