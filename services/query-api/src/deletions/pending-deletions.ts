import type { HiddenCondition } from '../clickhouse/query.ts';
import type { QueryRunner } from '../clickhouse/query-runner.ts';
import type { Sql } from '../clickhouse/sql.ts';
import type { Tables } from '../clickhouse/tables.ts';
import { hiddenEvents } from './hidden-events.ts';

/** How long the background waits between two polls, in milliseconds. */
const POLL_MS = 200;

/**
 * How old a poll may be, in milliseconds: a deletion has to be in force within a second. Counted from the start of the
 * poll, which sees every deletion that was stored before.
 */
const FRESH_MS = 500;

/** Polling pauses when no request has come for so long, in milliseconds. The next request waits for a poll. */
const IDLE_MS = 10_000;

/**
 * How many workspaces a process remembers. With more, queries of every workspace look up their deletions: that costs
 * time, and hides the same events.
 */
const WORKSPACES_MAX = 10_000;

function workspacesQuery(tables: Tables): Sql {
  return {
    sql: `SELECT DISTINCT workspace_id FROM ${tables.pendingDeletionsOfAllWorkspaces} LIMIT {workspaces_max:UInt64}`,
    params: { workspaces_max: WORKSPACES_MAX + 1 },
  };
}

interface Poll {
  readonly startedAt: number;
  /** The workspaces with pending deletions; `undefined` when there are too many to remember. */
  readonly workspaces: ReadonlySet<string> | undefined;
}

/**
 * Knows which workspaces have pending deletions. A background loop polls one small table for all workspaces, so that a
 * request costs nothing: it waits only when the last successful poll is too old, and then all requests wait for the
 * same one. No more than one poll runs at a time, also while ClickHouse does not respond. A poll may take as long as a
 * query: a busy ClickHouse makes requests wait, it does not refuse them.
 */
export class PendingDeletions {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #now: () => number;
  #last: Poll | undefined;
  #polling: Promise<Poll> | undefined;
  #requestedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  readonly #stopping = new AbortController();

  constructor(queryRunner: Pick<QueryRunner, 'all'>, now: () => number = performance.now.bind(performance)) {
    this.#queryRunner = queryRunner;
    this.#now = now;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#pollInBackground(), POLL_MS);
  }

  /** Ends the poll that runs. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#polling?.catch(() => undefined);
  }

  readonly hiddenCondition: HiddenCondition = async (workspace) => {
    this.#requestedAt = this.#now();
    const { workspaces } = await this.#freshPoll();
    return workspaces === undefined || workspaces.has(workspace) ? hiddenEvents : undefined;
  };

  async #freshPoll(): Promise<Poll> {
    if (this.#isFresh(this.#last)) return this.#last;
    const poll = await this.#poll();
    // One that was under way for too long may have missed a deletion.
    return this.#isFresh(poll) ? poll : await this.#poll();
  }

  #isFresh(poll: Poll | undefined): poll is Poll {
    return poll !== undefined && this.#now() - poll.startedAt <= FRESH_MS;
  }

  #pollInBackground(): void {
    if (this.#now() - this.#requestedAt > IDLE_MS || this.#polling) return;
    // A failure concerns the requests: they wait for a poll of their own once this one's predecessor is too old.
    this.#poll().catch(() => undefined);
  }

  /** Joins the poll that runs, or starts one. */
  async #poll(): Promise<Poll> {
    this.#polling ??= this.#query().finally(() => {
      this.#polling = undefined;
    });
    return await this.#polling;
  }

  async #query(): Promise<Poll> {
    const startedAt = this.#now();
    const rows = await this.#queryRunner.all({
      kind: 'pending_deletions',
      urgent: true,
      workspace: '',
      signal: this.#stopping.signal,
      statement: workspacesQuery,
    });
    const names = rows.map(([name]) => name as string);
    this.#last = { startedAt, workspaces: names.length > WORKSPACES_MAX ? undefined : new Set(names) };
    return this.#last;
  }
}
