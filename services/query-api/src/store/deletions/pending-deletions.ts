import { FreshPoll } from '../fresh-poll.ts';
import type { QueryRunner } from '../query-runner.ts';
import type { Sql } from '../sql.ts';
import type { HiddenCondition, Visibility } from '../stores.ts';
import type { Deletion, Tables } from '../tables.ts';
import { hiddenEvents, hiddenEventsAnd, hiddenEventsOfPersons, readDeletedVisitors } from './hidden-events.ts';

/** How old a poll may be, in milliseconds: a deletion has to be in force within a second. */
const FRESH_MS = 500;

/**
 * How many workspaces a process remembers. With more, queries of every workspace look up their deletions: that costs
 * time, and hides the same events.
 */
const WORKSPACES_MAX = 10_000;

/** How many visitors of deleted users a statement names. With more, each statement finds them by itself, which takes it a tenth of a second. */
const VISITORS_MAX = 500;

/** Knows which workspaces have pending deletions, from polls of one small table for all workspaces. */
export class PendingDeletions {
  /** The workspaces with pending deletions; `undefined` when there are too many to remember. */
  readonly #workspaces: FreshPoll<ReadonlySet<string> | undefined>;

  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #now: () => number;
  readonly #hasLinks: Visibility['hasLinks'];
  /** The visitors of deleted users of each workspace, and when they were asked for. */
  readonly #visitors = new Map<string, { readonly askedAt: number; readonly found: Promise<readonly Deletion[]> }>();

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
    await this.#workspaces.stop();
  }

  readonly hiddenCondition: HiddenCondition = async (workspace) => {
    const workspaces = await this.#workspaces.value();
    const isDeleting = workspaces === undefined || workspaces.has(workspace);
    if (!isDeleting) return undefined;
    if (!(await this.#hasLinks?.(workspace))) return hiddenEvents;
    const visitors = await this.#visitorsOf(workspace);
    if (visitors.length === 0) return hiddenEvents;
    return visitors.length > VISITORS_MAX ? hiddenEventsOfPersons : hiddenEventsAnd(visitors);
  };

  /** Returns the visitors of deleted users who have no deletion of their own yet, as they were half a second ago at most. */
  async #visitorsOf(workspace: string): Promise<readonly Deletion[]> {
    const now = this.#now();
    for (const [name, { askedAt }] of this.#visitors) {
      if (now - askedAt < FRESH_MS) break;
      this.#visitors.delete(name);
    }
    const known = this.#visitors.get(workspace);
    if (known) return await known.found;
    const found = readDeletedVisitors(this.#queryRunner, { workspace });
    this.#visitors.set(workspace, { askedAt: now, found });
    found.catch(() => this.#visitors.delete(workspace));
    return await found;
  }
}

function workspacesQuery(tables: Tables): Sql {
  return {
    sql: `SELECT DISTINCT workspace_id FROM ${tables.pendingDeletionsOfAllWorkspaces} LIMIT {workspaces_max:UInt64}`,
    params: { workspaces_max: WORKSPACES_MAX + 1 },
  };
}
