import { randomUUID } from 'node:crypto';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { STATEMENTS, type Statement } from './statements.ts';

/** A ClickHouse server among several that a writer records something at. */
export interface Place {
  readonly client: ClickHouseClient;
  /** Its name: its UUID, host and port. */
  readonly server: string;
}

/** What a batch reads of what others may have stored at another replica. */
const READ_BY_BATCHES = [
  ...['events', 'user_deletions', 'identity_deletions', 'console_fast_properties'],
  ...['writer_positions', 'writer_halts'],
] as const;

/** What says that users are deleted, as inserts look at it. */
const DELETIONS = ['user_deletions', 'identity_deletions'] as const;

/** What decides which visitors are deleted with a user. */
const READ_BY_VISITORS = ['identity_links', 'pending_deletions', ...DELETIONS] as const;

/** What an erasure reads of deleted users, to decide what may go, and to store what stands in for it. */
const READ_BY_ERASURE = ['identity_links', 'events', 'entities', 'user_sightings', ...DELETIONS] as const;

/** Tables that ClickHouse copies from one replica to another. */
type Table = (typeof READ_BY_BATCHES)[number] | (typeof READ_BY_VISITORS)[number] | (typeof READ_BY_ERASURE)[number];

const TABLES: readonly Table[] = [...new Set([...READ_BY_BATCHES, ...READ_BY_VISITORS, ...READ_BY_ERASURE])];

/** Brings a replica level, by table: it returns when the replica has each part of the table that any replica had committed before. */
const SYNC = Object.fromEntries(
  TABLES.map((table) => [table, { name: `sync-${table}`, sql: `SYSTEM SYNC REPLICA ${table} LIGHTWEIGHT` }]),
) as Readonly<Record<Table, Statement>>;

/** The statements that bring replicas level, for those who have to know them by their texts. */
export const REPLICA_STATEMENTS: readonly Statement[] = Object.values(SYNC);

export interface ReplicasOptions {
  /** Of the replica that the writer stores at. */
  readonly own: ClickHouseClient;
  /** Of all others. */
  readonly others: readonly ClickHouseClient[];
  readonly writerId: string;
  /** How the query ids of the batches of all writers of the group begin. */
  readonly groupPrefix: string;
  readonly statementTimeoutMs: number;
}

/** How often it is looked whether older statements have ended, in milliseconds. */
const LOOK_MS = 200;

/**
 * Replicas that have the same rows: each insert is committed at one of them, and ClickHouse copies its parts to the others, in any order.
 * What a writer finds at its own replica may be there alone, and what it does not find may be at another one.
 */
export class Replicas {
  readonly #options: ReplicasOptions;

  constructor(options: ReplicasOptions) {
    this.#options = options;
  }

  /**
   * Makes sure that the own replica has all that was committed anywhere before, of what batches read. Once all older statements were ended
   * everywhere, nobody but the owners stores anything of their partitions. A position that this replica alone has may die with it: then the
   * partition goes on at an earlier one, and what was stored since is found.
   *
   * @throws {Error} when there is a replica that this writer does not know, or what the own one has may be removed again
   * @throws ClickHouse's errors
   */
  async takeOver(): Promise<void> {
    await this.#requireAllKnown();
    await this.requireDecided();
    await this.#sync(this.#options.own, READ_BY_BATCHES);
  }

  /**
   * Makes sure that events which are found from now on at the own replica were committed. Where an insert has ended while Keeper was away, its part can be
   * read for some minutes, and is then removed if Keeper does not have it (ClickHouse#66114).
   *
   * @throws {Error} when that is not decided yet; the call may be repeated
   * @throws ClickHouse's errors
   */
  async requireDecided(): Promise<void> {
    const { own } = this.#options;
    const result = await own.query({ query: STATEMENTS['count-undecided-parts'].sql, format: 'JSONEachRow' });
    const [row] = await result.json<{ parts: number }>();
    if (row?.parts === 0) return;
    throw new Error(
      `ClickHouse has yet to find out whether Keeper has ${row?.parts ?? 'some'} parts of events; it takes some minutes after Keeper was away`,
    );
  }

  /**
   * Makes sure that events which were found at the own replica are on a second one: that of an insert whose end nobody knows may be at one
   * alone.
   *
   * @throws ClickHouse's errors
   */
  async keepFound(): Promise<void> {
    const failures: unknown[] = [];
    for (const client of this.#options.others) {
      try {
        await this.#sync(client, ['events']);
        return;
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Makes sure that the own replica has the positions that any writer has stored. @throws ClickHouse's errors */
  async readPositions(): Promise<void> {
    await this.#sync(this.#options.own, ['writer_positions']);
  }

  /** Makes sure that the own replica has all that was stored of visitors and deletions. @throws ClickHouse's errors */
  async readLinks(): Promise<void> {
    await this.#sync(this.#options.own, READ_BY_VISITORS);
  }

  /** Makes sure that the own replica has all that was stored of deleted users. @throws ClickHouse's errors */
  async readDeleted(): Promise<void> {
    await this.#sync(this.#options.own, READ_BY_ERASURE);
  }

  /**
   * Makes sure that all replicas know the deletions that are stored by now, and that no batch goes on which may not know them. How long an
   * insert may take is not limited here: it waits for other replicas, and for Keeper.
   *
   * @param delayMs how long a batch may take between its statements
   * @returns when it began, by the own replica, in milliseconds: deletions that were pending by then are settled for good
   * @throws {Error} when the signal aborts, older statements do not end, or there is a replica that this writer does not know
   * @throws ClickHouse's errors, also where one of the replicas does not answer
   */
  async settle(delayMs: number, signal: AbortSignal): Promise<number> {
    const { own, others } = this.#options;
    const all = [own, ...others];
    const beganAtMs = await this.#requireAllKnown();
    await Promise.all(all.map((client) => this.#sync(client, DELETIONS)));
    const knownAt = performance.now();
    await sleep(delayMs, signal);
    for (const client of all) await this.#waitForOlder(client, knownAt, signal);
    return beganAtMs;
  }

  /**
   * Another writer may store at a replica that this one does not know, since the file of servers was changed after its start: there, older
   * owners would not be fenced, and deletions not be known. What is stored there by now was stored after its tables were created.
   *
   * @returns the time of the own replica, in milliseconds
   */
  async #requireAllKnown(): Promise<number> {
    const { own, others } = this.#options;
    const result = await own.query({ query: STATEMENTS['count-replicas'].sql, format: 'JSONEachRow' });
    const [row] = await result.json<{ replicas: number; now_ms: number }>();
    if (!row || row.replicas === 0) throw new Error('the own replica of ClickHouse has no session of Keeper');
    const named = 1 + others.length;
    if (row.replicas <= named) return row.now_ms;
    throw new Error(
      `Keeper knows ${row.replicas} replicas of the tables, and CLICKHOUSE_SERVERS_FILE names ${named}: put all of them into the file, or drop ` +
        'those that are lost with SYSTEM DROP REPLICA, and start the writer again',
    );
  }

  async #waitForOlder(client: ClickHouseClient, sinceMs: number, signal: AbortSignal): Promise<void> {
    const { groupPrefix, statementTimeoutMs } = this.#options;
    const endsAt = performance.now() + 2 * statementTimeoutMs;
    for (;;) {
      signal.throwIfAborted();
      const askedAt = performance.now();
      const query = { query: STATEMENTS['find-longest-statement'].sql, query_params: { groupPrefix } };
      const result = await client.query({ ...query, format: 'JSONEachRow' });
      const [row] = await result.json<{ seconds: number }>();
      if (!row) throw new Error('ClickHouse has returned no row of its statements');
      if (row.seconds * 1_000 < askedAt - sinceMs) return;
      if (askedAt > endsAt) throw new Error('a batch that began before deletions were known everywhere has not ended');
      await sleep(LOOK_MS, signal);
    }
  }

  async #sync(client: ClickHouseClient, tables: readonly Table[]): Promise<void> {
    const { writerId, statementTimeoutMs } = this.#options;
    // ClickHouse waits for so long, in seconds.
    const clickhouse_settings = { receive_timeout: statementTimeoutMs / 1_000 };
    for (const table of tables) {
      const { name, sql } = SYNC[table];
      const query_id = `sluice-writer/${writerId}-replicas/${name}/${randomUUID()}`;
      await client.command({ query: sql, query_id, clickhouse_settings });
    }
  }
}

/** By how many seconds a replica may be behind that writers choose: before they store, it has to have everything. */
const BEHIND_MAX = 60;

/** Returns by how many seconds a replica is behind; infinity where it cannot be stored at, since it has no session of Keeper. */
async function lookAt(client: ClickHouseClient): Promise<number> {
  const result = await client.query({ query: STATEMENTS['look-at-replica'].sql, format: 'JSONEachRow' });
  const [row] = await result.json<{ stuck: number; behind: number }>();
  return row?.stuck === 0 ? row.behind : Number.POSITIVE_INFINITY;
}

/** Whether a replica can be stored at: it answers, and has a session of Keeper. */
async function canStore(client: ClickHouseClient): Promise<boolean> {
  return Number.isFinite(await lookAt(client));
}

/**
 * Returns the place of the replica that a writer stores at, beginning with a chosen one: the first one that can be stored at and is not far
 * behind, as one is that copies everything; else the first one that can be stored at; the chosen one where none can.
 *
 * @param clients of all replicas
 */
export async function chooseReplica(clients: readonly ClickHouseClient[], chosen: number): Promise<number> {
  let first: number | undefined;
  for (let turn = 0; turn < clients.length; turn += 1) {
    const place = (chosen + turn) % clients.length;
    const client = clients[place];
    const behind = client ? await lookAt(client).catch(() => Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    if (behind < BEHIND_MAX) return place;
    if (Number.isFinite(behind)) first ??= place;
  }
  return first ?? chosen;
}

/** How often the own replica is looked at, in milliseconds. */
const WATCH_MS = 1_000;

export interface ReplicaWatchOptions extends Pick<ReplicasOptions, 'own' | 'others'> {
  /** How long the own replica may be stuck while another one is not, in milliseconds. */
  readonly stuckMs: number;
  /** Called once it is stuck for longer. */
  readonly onStuck: (error: Error) => void;
}

/**
 * Notices that nothing can be stored at the own replica, and could be at another one. A writer never changes its replica: it ends, and begins
 * anew at another one, as another member of its group, so that what it has sent to this one is of an older epoch.
 */
export class ReplicaWatch {
  readonly name = 'replica watch';
  readonly #options: ReplicaWatchOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: ReplicaWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { own, others, stuckMs, onStuck } = this.#options;
    const { signal } = this.#stopping;
    let stuckAt: number | undefined;
    while (!signal.aborted) {
      await sleep(WATCH_MS, signal);
      // One that does not answer keeps every take-over from going on: to begin anew at another one would not help.
      const isStuck = !(await canStore(own).catch(() => true));
      if (!isStuck) stuckAt = undefined;
      else stuckAt ??= performance.now();
      if (stuckAt === undefined || signal.aborted || performance.now() - stuckAt < stuckMs) continue;
      const isElsewhere = await Promise.all(others.map((client) => canStore(client).catch(() => false)));
      if (!isElsewhere.includes(true)) continue;
      onStuck(
        new Error('the own replica of ClickHouse is read-only, and another one is not: the writer begins anew there'),
      );
      return;
    }
  }
}
