import { LRUCache } from 'lru-cache';
import { FreshPoll } from '../fresh-poll.ts';
import type { QueryRunner } from '../query-runner.ts';
import type { Sql } from '../sql.ts';
import type { HiddenCondition, Visibility } from '../stores.ts';
import type { Deletion, Tables } from '../tables.ts';
import { hidingWith, mergedAmong, readDeletedWithUsers } from './deleted-with-users.ts';

/** How old a poll may be, in milliseconds: a deletion has to be in force within a second. */
const FRESH_MS = 500;

/**
 * How many workspaces a process remembers. With more, queries of every workspace look up their deletions: that costs
 * time, and hides the same events.
 */
const WORKSPACES_MAX = 10_000;

/** Of how many workspaces it is known who is deleted with their deleted users. */
const POLLED_MAX = 1_000;

/** Knows which workspaces have pending deletions, from polls of one small table for all workspaces. */
export class PendingDeletions {
  /** The workspaces with pending deletions; `undefined` when there are too many to remember. */
  readonly #workspaces: FreshPoll<ReadonlySet<string> | undefined>;

  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #now: () => number;
  readonly #identities: Visibility['identities'];
  /** Of each workspace that was asked for, who is deleted with deleted users and has no deletion of its own yet. */
  readonly #polls = new LRUCache<string, FreshPoll<readonly Deletion[]>>({ max: POLLED_MAX });

  constructor(
    queryRunner: Pick<QueryRunner, 'all'>,
    now = () => performance.now(),
    identities?: Visibility['identities'],
  ) {
    this.#queryRunner = queryRunner;
    this.#now = now;
    this.#identities = identities;
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
    await Promise.all([this.#workspaces, ...this.#polls.values()].map((poll) => poll.stop()));
  }

  readonly hiddenCondition: HiddenCondition = async (workspace) => {
    if (!(await this.#isDeleting(workspace))) return undefined;
    const isLinked = (await this.#identities?.(workspace))?.areLinked ?? false;
    return hidingWith(isLinked ? await this.#withUsers(workspace).value() : []);
  };

  /** As {@link Visibility.mergedDeletions}. */
  readonly mergedDeletions = async (workspace: string): Promise<readonly Deletion[]> => {
    if (!(await this.#isDeleting(workspace))) return [];
    const isMerged = (await this.#identities?.(workspace))?.areMerged ?? false;
    return isMerged ? mergedAmong(await this.#withUsers(workspace).value()) : [];
  };

  async #isDeleting(workspace: string): Promise<boolean> {
    const workspaces = await this.#workspaces.value();
    return workspaces === undefined || workspaces.has(workspace);
  }

  /** It polls when it is asked: all reads of half a second wait for the same one, and no more than one runs at a time. */
  #withUsers(workspace: string): FreshPoll<readonly Deletion[]> {
    const query = (signal: AbortSignal) => readDeletedWithUsers(this.#queryRunner, workspace, { signal });
    const poll = this.#polls.get(workspace) ?? new FreshPoll(query, { freshMs: FRESH_MS, now: this.#now });
    this.#polls.set(workspace, poll);
    return poll;
  }
}

function workspacesQuery(tables: Tables): Sql {
  return {
    sql: `SELECT DISTINCT workspace_id FROM ${tables.pendingDeletionsOfAllWorkspaces} LIMIT {workspaces_max:UInt64}`,
    params: { workspaces_max: WORKSPACES_MAX + 1 },
  };
}
