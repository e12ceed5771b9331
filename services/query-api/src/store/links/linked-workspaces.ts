import { LRUCache } from 'lru-cache';
import type { QueryRunner } from '../query-runner.ts';
import type { Sql } from '../sql.ts';
import type { Tables } from '../tables.ts';

/** How long it counts as known that a workspace has links, and that it has none, in milliseconds: the first one is seen soon. */
const LINKED_MS = 60_000;
const UNLINKED_MS = 1_000;

/** How many workspaces are known at most. */
const WORKSPACES_MAX = 10_000;

/** Knows which workspaces have links of visitors to users: what asks for persons costs others next to nothing. */
export class LinkedWorkspaces {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #known = new LRUCache<string, boolean>({ max: WORKSPACES_MAX });
  readonly #reads = new Map<string, Promise<boolean>>();

  constructor(queryRunner: Pick<QueryRunner, 'all'>) {
    this.#queryRunner = queryRunner;
  }

  /** Requests of a workspace at the same time wait for one read. */
  readonly hasLinks = async (workspace: string): Promise<boolean> => {
    const known = this.#known.get(workspace);
    if (known !== undefined) return known;
    const reading =
      this.#reads.get(workspace) ?? this.#read(workspace).finally(() => void this.#reads.delete(workspace));
    this.#reads.set(workspace, reading);
    return await reading;
  };

  async #read(workspace: string): Promise<boolean> {
    const statement = (tables: Tables): Sql => anyLink(tables.ofWorkspaceIn('of'), workspace);
    const rows = await this.#queryRunner.all({ kind: 'links_known', urgent: true, workspace: '', statement });
    const hasLinks = rows.length > 0;
    this.#known.set(workspace, hasLinks, { ttl: hasLinks ? LINKED_MS : UNLINKED_MS });
    return hasLinks;
  }
}

function anyLink(tables: Tables, workspace: string): Sql {
  return { sql: `SELECT 1 FROM ${tables.identityLinks} LIMIT 1`, params: { ...tables.params, of: workspace } };
}
