import { LRUCache } from 'lru-cache';
import { FreshPoll } from '../fresh-poll.ts';
import type { QueryRunner } from '../query-runner.ts';
import type { Sql } from '../sql.ts';
import type { HiddenCondition, Visibility } from '../stores.ts';
import type { Deletion, Tables } from '../tables.ts';
import { canBeNamed, hiddenEvents, hiddenEventsOfPersons, readDeletedVisitors } from './hidden-events.ts';

/** How old a poll may be, in milliseconds: a deletion has to be in force within a second. */
const FRESH_MS = 500;

/**
 * How many workspaces a process remembers. With more, queries of every workspace look up their deletions: that costs
 * time, and hides the same events.
 */
const WORKSPACES_MAX = 10_000;

/** Of how many workspaces it is known which visitors belong to their deleted users. */
const POLLED_MAX = 1_000;

/** Knows which workspaces have pending deletions, from polls of one small table for all workspaces. */
export class PendingDeletions {
  /** The workspaces with pending deletions; `undefined` when there are too many to remember. */
  readonly #workspaces: FreshPoll<ReadonlySet<string> | undefined>;

  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #now: () => number;
  readonly #hasLinks: Visibility['hasLinks'];
  /** Of each workspace that was asked for, the visitors of deleted users who have no deletion of their own yet. */
  readonly #visitors = new LRUCache<string, FreshPoll<readonly Deletion[]>>({ max: POLLED_MAX });

  constructor(queryRunner: Pick<QueryRunner, 'all'>, now = () => performance.now(), hasLinks?: Visibility['hasLinks']) {
    this.#queryRunner = queryRunner;
    this.#now = now;
    this.#hasLinks = hasLinks;
    const query = async (signal: AbortSignal) => {
      const rows = await queryRunner.all({
        kind: 'pending_deletions',
        urgent: true,
        workspace: '',
        signal,
        statement: workspacesQuery,
      });
      return rows.length > WORKSPACES_MAX ? undefined : new Set(rows.map(([name]) => name as string));
    };
    this.#workspaces = new FreshPoll(query, { freshMs: FRESH_MS, now });
  }

  start(): void {
    this.#workspaces.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#workspaces, ...this.#visitors.values()].map((poll) => poll.stop()));
  }

  readonly hiddenCondition: HiddenCondition = async (workspace) => {
    const workspaces = await this.#workspaces.value();
    const isDeleting = workspaces === undefined || workspaces.has(workspace);
    if (!isDeleting) return undefined;
    if (!(await this.#hasLinks?.(workspace))) return hiddenEvents;
    const visitors = await this.#visitorsOf(workspace).value();
    if (visitors.length === 0) return hiddenEvents;
    // Where they are too many, each statement finds them by itself, which takes it a tenth of a second.
    return canBeNamed(visitors) ? (tables) => hiddenEvents(tables.withDeletions(visitors)) : hiddenEventsOfPersons;
  };

  /** It polls when it is asked: all reads of half a second wait for the same one, and no more than one runs at a time. */
  #visitorsOf(workspace: string): FreshPoll<readonly Deletion[]> {
    const query = (signal: AbortSignal) => readDeletedVisitors(this.#queryRunner, { workspace, signal });
    const poll = this.#visitors.get(workspace) ?? new FreshPoll(query, { freshMs: FRESH_MS, now: this.#now });
    this.#visitors.set(workspace, poll);
    return poll;
  }
}

function workspacesQuery(tables: Tables): Sql {
  return {
    sql: `SELECT DISTINCT workspace_id FROM ${tables.pendingDeletionsOfAllWorkspaces} LIMIT {workspaces_max:UInt64}`,
    params: { workspaces_max: WORKSPACES_MAX + 1 },
  };
}
