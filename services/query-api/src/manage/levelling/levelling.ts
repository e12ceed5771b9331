import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Server } from '@sluice/shared/servers/servers-file';
import type { Component } from '@sluice/shared/service/lifecycle';
import { FAST_SETS_MAX, IDENTITIES, Purge, type SettingTable } from '../../store/store.ts';
import { FAST_LISTS, PURGE } from '../fast/fast-properties.ts';
import { IDENTITY_SETTINGS } from '../identities/identity-settings-route.ts';

/** The pause between two looks at the servers, in milliseconds. */
const LOOK_MS = 2_000;

/** How long a statement may take, in milliseconds. */
const STATEMENT_MS_MAX = 10_000;

/** A table of what is set on one server, and has to be known on all of them. */
interface LevelledTable extends SettingTable {
  /** How many of the newest values of a workspace all servers have in the end. */
  readonly valuesMax: number;
  /** What removes rows that count no more, after others were added. Default: nothing has to. */
  readonly purge?: string;
}

const LEVELLED_TABLES: readonly LevelledTable[] = [
  { ...FAST_LISTS, valuesMax: FAST_SETS_MAX, purge: PURGE },
  { ...IDENTITY_SETTINGS, valuesMax: IDENTITIES.length },
];

/** The newest values of each workspace, as every server has them in the end. Of an equal value the newest time counts. */
function valuesOf({ name, value, time, valuesMax }: LevelledTable): string {
  return `
SELECT workspace_id, ${value} AS value, toUnixTimestamp64Micro(max(${time})) AS since
FROM ${name}
WHERE {workspace:String} = '' OR workspace_id = {workspace:String}
GROUP BY workspace_id, value
ORDER BY since DESC, value
LIMIT ${valuesMax} BY workspace_id`;
}

/** Tells the values of a workspace from others: some bytes for each workspace, however much it has. */
function digestsOf(table: LevelledTable): string {
  return `
SELECT workspace_id AS workspace, toString(groupBitXor(cityHash64(value, since))) AS digest
FROM (${valuesOf(table)})
GROUP BY workspace_id`;
}

/** Where what is set is stored. */
export type Place = Pick<Server, 'name' | 'url' | 'database'>;

export interface LevellingOptions {
  /** Of the server where it is set. */
  readonly own: ClickHouseClient;
  /** Returns the servers that are read, as far as they can be reached. */
  readonly places: () => Promise<readonly Place[]>;
  /** Connects with the account that stores it. */
  readonly connect: (place: Place) => ClickHouseClient;
  readonly logger: Logger;
}

/** What was set for a workspace. */
interface Value {
  readonly value: string | readonly string[];
  /** When, in microseconds since 1970. */
  readonly since: number;
}

/**
 * Brings all servers to know the same of what workspaces have set: of their fast properties, and of what reads see. It is set on one server.
 * Whatever any of the servers has, the others get it with the time when it was set, so the newest is in force on all of them, whichever was
 * away, was added or was restored. Nothing is decided here, and each step may be repeated: several query-apis do it beside each other.
 */
export class Levelling implements Component {
  readonly name = 'settings of several servers';
  readonly #options: LevellingOptions;
  readonly #own: LevelledPlace;
  readonly #others = new Map<string, LevelledPlace>();
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #failure: string | undefined;

  constructor(options: LevellingOptions) {
    this.#options = options;
    this.#own = new LevelledPlace(options.own, this.#stopping.signal);
  }

  async start(): Promise<void> {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await Promise.all([...this.#others.values()].map((place) => place.client.close()));
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const failures = await this.#level().catch((error: Error) => [error.message]);
      if (!signal.aborted) this.#report(failures.join('; '));
      await sleep(LOOK_MS, signal);
    }
  }

  /** Says it once, and not whenever it is the same again. */
  #report(failure: string): void {
    if (failure !== '' && failure !== this.#failure) {
      this.#options.logger.warn(
        { reason: failure },
        'what workspaces have set does not reach all servers yet; retrying',
      );
    }
    this.#failure = failure;
  }

  /** Returns why servers could not be read. */
  async #level(): Promise<readonly string[]> {
    const places = [this.#own, ...(await this.#connected())];
    const failures: string[] = [];
    for (const table of LEVELLED_TABLES) failures.push(...(await this.#levelTable(table, places)));
    return [...new Set(failures)];
  }

  async #levelTable(table: LevelledTable, places: readonly LevelledPlace[]): Promise<readonly string[]> {
    const outcomes = await Promise.allSettled(places.map((place) => place.digests(table)));
    const known = places.filter((_, index) => outcomes[index]?.status === 'fulfilled');
    const digests = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    for (const workspace of differing(digests)) {
      if (this.#stopping.signal.aborted) break;
      await levelWorkspace(table, workspace, known);
    }
    return outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [(outcome.reason as Error).message] : []));
  }

  async #connected(): Promise<readonly LevelledPlace[]> {
    const places = await this.#options.places();
    return places.map((place) => {
      const key = JSON.stringify([place.url, place.database]);
      const connected = this.#others.get(key) ?? new LevelledPlace(this.#options.connect(place), this.#stopping.signal);
      this.#others.set(key, connected);
      return connected;
    });
  }
}

/** What one server has. Its methods throw ClickHouse's errors. */
class LevelledPlace {
  readonly client: ClickHouseClient;
  readonly #stopping: AbortSignal;
  readonly #purges: ReadonlyMap<LevelledTable, Purge>;

  constructor(client: ClickHouseClient, stopping: AbortSignal) {
    this.client = client;
    this.#stopping = stopping;
    this.#purges = new Map(
      LEVELLED_TABLES.flatMap((table) => (table.purge ? [[table, new Purge(client, [table.purge])] as const] : [])),
    );
  }

  async digests(table: LevelledTable): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#read<{ workspace: string; digest: string }>(digestsOf(table), '');
    return new Map(rows.map(({ workspace, digest }) => [workspace, digest]));
  }

  async values(table: LevelledTable, workspace: string): Promise<readonly Value[]> {
    return await this.#read<Value>(`SELECT value, since FROM (${valuesOf(table)})`, workspace);
  }

  async add(table: LevelledTable, workspace: string, values: readonly Value[]): Promise<void> {
    await this.client.insert({
      table: table.name,
      values: values.map(({ value, since }) => ({
        workspace_id: workspace,
        [table.value]: value,
        [table.time]: since,
      })),
      format: 'JSONEachRow',
      abort_signal: this.#limit(),
    });
    void this.#purges.get(table)?.run();
  }

  async #read<Row>(query: string, workspace: string): Promise<readonly Row[]> {
    const abort_signal = this.#limit();
    const result = await this.client.query({ query, query_params: { workspace }, format: 'JSONEachRow', abort_signal });
    return await result.json<Row>();
  }

  #limit(): AbortSignal {
    return AbortSignal.any([this.#stopping, AbortSignal.timeout(STATEMENT_MS_MAX)]);
  }
}

/** Returns the workspaces of which not all servers have the same. */
function differing(digests: readonly ReadonlyMap<string, string>[]): readonly string[] {
  const workspaces = new Set(digests.flatMap((one) => [...one.keys()]));
  return [...workspaces].filter((workspace) => new Set(digests.map((one) => one.get(workspace))).size > 1);
}

/** Gives each server the values of a workspace that it lacks, of the newest ones of all. */
async function levelWorkspace(
  table: LevelledTable,
  workspace: string,
  places: readonly LevelledPlace[],
): Promise<void> {
  const values = await Promise.all(places.map((place) => place.values(table, workspace)));
  const newest = newestValues(values.flat(), table.valuesMax);
  await Promise.all(
    places.map(async (place, index) => {
      const own = new Set(values[index]?.map(textOf));
      const lacking = newest.filter((value) => !own.has(textOf(value)));
      if (lacking.length > 0) await place.add(table, workspace, lacking);
    }),
  );
}

function newestValues(values: readonly Value[], valuesMax: number): readonly Value[] {
  const sorted = values.toSorted((one, other) => other.since - one.since);
  const byValue = Map.groupBy(sorted, ({ value }) => JSON.stringify(value));
  return [...byValue.values()].flatMap(([first]) => first ?? []).slice(0, valuesMax);
}

function textOf({ value, since }: Value): string {
  return JSON.stringify([value, since]);
}
