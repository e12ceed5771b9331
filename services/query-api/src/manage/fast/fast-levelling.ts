import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Server } from '@sluice/shared/servers/servers-file';
import type { Component } from '@sluice/shared/service/lifecycle';
import { FAST_SETS_MAX, Purge } from '../../store/store.ts';
import { PURGE } from './fast-properties.ts';

/** The pause between two looks at the servers, in milliseconds. */
const LOOK_MS = 2_000;

/** How long a statement may take, in milliseconds. */
const STATEMENT_MS_MAX = 10_000;

/** The newest lists of each workspace, as every server has them in the end. Equal names are one list, whose newest time counts. */
const LISTS = `
SELECT workspace_id, names, toUnixTimestamp64Micro(max(declared_at)) AS declared
FROM console_fast_properties
WHERE {workspace:String} = '' OR workspace_id = {workspace:String}
GROUP BY workspace_id, names
ORDER BY declared DESC, names
LIMIT ${FAST_SETS_MAX} BY workspace_id`;

/** Tells the lists of a workspace from others: some bytes for each workspace, however much they declare. */
const DIGESTS = `
SELECT workspace_id AS workspace, toString(groupBitXor(cityHash64(names, declared))) AS digest
FROM (${LISTS})
GROUP BY workspace_id`;

/** Where the lists of fast properties are stored. */
export type Place = Pick<Server, 'name' | 'url' | 'database'>;

export interface FastLevellingOptions {
  /** Of the server where properties are declared. */
  readonly own: ClickHouseClient;
  /** Returns the servers whose events have columns, as far as they can be reached. */
  readonly places: () => Promise<readonly Place[]>;
  /** Connects with the account that stores what is declared. */
  readonly connect: (place: Place) => ClickHouseClient;
  readonly logger: Logger;
}

/** A list of names, by column. */
interface List {
  readonly names: readonly string[];
  /** In microseconds since 1970. */
  readonly declared: number;
}

/**
 * Brings all servers to have the same lists of fast properties. Properties are declared on one server. Whatever list any of the servers
 * has, the others get it with the time when it was declared, so the newest is in force on all of them, whichever was away, was
 * added or was restored. Nothing is decided here, and each step may be repeated: several query-apis do it beside each other.
 */
export class FastLevelling implements Component {
  readonly name = 'fast properties of several servers';
  readonly #options: FastLevellingOptions;
  readonly #own: LevelledPlace;
  readonly #others = new Map<string, LevelledPlace>();
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #failure: string | undefined;

  constructor(options: FastLevellingOptions) {
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
      this.#options.logger.warn({ reason: failure }, 'fast properties do not reach all servers yet; retrying');
    }
    this.#failure = failure;
  }

  /** Returns why servers could not be read. */
  async #level(): Promise<readonly string[]> {
    const places = [this.#own, ...(await this.#connected())];
    const outcomes = await Promise.allSettled(places.map((place) => place.digests()));
    const known = places.filter((_, index) => outcomes[index]?.status === 'fulfilled');
    const digests = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    for (const workspace of differing(digests)) {
      if (this.#stopping.signal.aborted) break;
      await levelWorkspace(workspace, known);
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

/** The lists on one server. Its methods throw ClickHouse's errors. */
class LevelledPlace {
  readonly client: ClickHouseClient;
  readonly #stopping: AbortSignal;
  readonly #purge: Purge;

  constructor(client: ClickHouseClient, stopping: AbortSignal) {
    this.client = client;
    this.#stopping = stopping;
    this.#purge = new Purge(client, [PURGE]);
  }

  async digests(): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#read<{ workspace: string; digest: string }>(DIGESTS, '');
    return new Map(rows.map(({ workspace, digest }) => [workspace, digest]));
  }

  async lists(workspace: string): Promise<readonly List[]> {
    return await this.#read<List>(`SELECT names, declared FROM (${LISTS})`, workspace);
  }

  async add(workspace: string, lists: readonly List[]): Promise<void> {
    await this.client.insert({
      table: 'console_fast_properties',
      values: lists.map(({ names, declared }) => ({ workspace_id: workspace, names, declared_at: declared })),
      format: 'JSONEachRow',
      abort_signal: this.#limit(),
    });
    void this.#purge.run();
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

/** Returns the workspaces of which not all servers have the same lists. */
function differing(digests: readonly ReadonlyMap<string, string>[]): readonly string[] {
  const workspaces = new Set(digests.flatMap((one) => [...one.keys()]));
  return [...workspaces].filter((workspace) => new Set(digests.map((one) => one.get(workspace))).size > 1);
}

/** Gives each server the lists of a workspace that it lacks, of the newest ones of all. */
async function levelWorkspace(workspace: string, places: readonly LevelledPlace[]): Promise<void> {
  const lists = await Promise.all(places.map((place) => place.lists(workspace)));
  const newest = newestLists(lists.flat());
  await Promise.all(
    places.map(async (place, index) => {
      const own = new Set(lists[index]?.map(textOf));
      const lacking = newest.filter((list) => !own.has(textOf(list)));
      if (lacking.length > 0) await place.add(workspace, lacking);
    }),
  );
}

function newestLists(lists: readonly List[]): readonly List[] {
  const sorted = lists.toSorted((one, other) => other.declared - one.declared);
  const byNames = Map.groupBy(sorted, ({ names }) => JSON.stringify(names));
  return [...byNames.values()].flatMap(([first]) => first ?? []).slice(0, FAST_SETS_MAX);
}

function textOf({ names, declared }: List): string {
  return JSON.stringify([names, declared]);
}
