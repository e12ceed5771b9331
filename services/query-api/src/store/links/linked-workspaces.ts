import { IS_MERGE_SQL } from '@sluice/shared/rows/merged-user';
import { LRUCache } from 'lru-cache';
import type { QueryRunner } from '../query-runner.ts';
import type { Sql } from '../sql.ts';
import type { Identities } from '../stores.ts';
import type { Tables } from '../tables.ts';

/** How long it counts as known that a workspace has both links and merges, and what it has otherwise, in milliseconds: the first one is seen soon. */
const BOTH_MS = 60_000;
const OTHERWISE_MS = 1_000;

/** How many workspaces are known at most. */
const WORKSPACES_MAX = 10_000;

/** Knows which workspaces have links of visitors to users, and merges of users: what asks for persons costs others next to nothing. */
export class LinkedWorkspaces {
  readonly #known: LRUCache<string, Identities>;

  constructor(queryRunner: Pick<QueryRunner, 'all'>) {
    this.#known = new LRUCache<string, Identities>({
      ...{ max: WORKSPACES_MAX, ttl: OTHERWISE_MS },
      async fetchMethod(workspace, _, { options }) {
        const found = await read(queryRunner, workspace);
        if (found.areMerged) options.ttl = BOTH_MS;
        return found;
      },
    });
  }

  /** Requests of a workspace at the same time wait for one read. */
  readonly identities = (workspace: string): Promise<Identities> => this.#known.forceFetch(workspace);
}

async function read(queryRunner: Pick<QueryRunner, 'all'>, workspace: string): Promise<Identities> {
  const statement = (tables: Tables): Sql => anyOfBoth(tables.ofWorkspaceIn('of'), workspace);
  const rows = await queryRunner.all({ kind: 'links_known', urgent: true, workspace: '', statement });
  return { areLinked: rows.length > 0, areMerged: rows.some(([isMerge]) => isMerge === 1) };
}

/** Both are found by the sorting key, whatever is stored. */
function anyOfBoth(tables: Tables, workspace: string): Sql {
  return {
    sql: `SELECT 0 FROM ${tables.identityLinks} LIMIT 1
UNION ALL
SELECT 1 FROM ${tables.identityLinks} WHERE ${IS_MERGE_SQL} AND said = 1 LIMIT 1`,
    params: { ...tables.params, of: workspace },
  };
}
