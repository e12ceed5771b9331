import { FreshPoll } from '../fresh-poll.ts';
import type { QueryRunner } from '../query-runner.ts';
import type { Sql } from '../sql.ts';
import type { HiddenCondition, Visibility } from '../stores.ts';
import type { Tables } from '../tables.ts';
import { hidingOf } from './hidden-events.ts';

/** How old a poll may be, in milliseconds: a deletion has to be in force within a second. */
const FRESH_MS = 500;

/**
 * How many workspaces a process remembers. With more, queries of every workspace look up their deletions: that costs
 * time, and hides the same events.
 */
const WORKSPACES_MAX = 10_000;

/** Knows which workspaces have pending deletions, from polls of one small table for all workspaces. */
export class PendingDeletions {
  /** The workspaces with pending deletions; `undefined` when there are too many to remember. */
  readonly #workspaces: FreshPoll<ReadonlySet<string> | undefined>;

  readonly #hasLinks: Visibility['hasLinks'];

  constructor(queryRunner: Pick<QueryRunner, 'all'>, now?: () => number, hasLinks?: Visibility['hasLinks']) {
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
    this.#workspaces = new FreshPoll(query, { freshMs: FRESH_MS, ...(now && { now }) });
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
    return isDeleting ? await hidingOf(workspace, this.#hasLinks) : undefined;
  };
}

function workspacesQuery(tables: Tables): Sql {
  return {
    sql: `SELECT DISTINCT workspace_id FROM ${tables.pendingDeletionsOfAllWorkspaces} LIMIT {workspaces_max:UInt64}`,
    params: { workspaces_max: WORKSPACES_MAX + 1 },
  };
}
