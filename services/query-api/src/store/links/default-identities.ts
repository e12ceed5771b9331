import { LRUCache } from 'lru-cache';
import type { Row } from '../clickhouse-reader.ts';
import type { Query } from '../query.ts';
import type { Sql } from '../sql.ts';
import type { Tables } from '../tables.ts';

/** Whose the events without a user are: nobody's, or that of the user whom their visitor belongs to. */
export const IDENTITIES = ['raw', 'linked'] as const;

export type Identity = (typeof IDENTITIES)[number];

/** What reads see where a workspace has set nothing. */
export const IDENTITY_DEFAULT: Identity = 'linked';

/** How long a setting counts as known, in milliseconds: what another query-api has set is in force within this time. */
const KNOWN_MS = 10_000;

/** How many workspaces are known at most. */
const WORKSPACES_MAX = 10_000;

interface Runner {
  all(query: Query): Promise<readonly Row[]>;
}

/** Knows what reads of each workspace see that do not say it. */
export class DefaultIdentities {
  readonly #known: LRUCache<string, Identity>;

  constructor(queryRunner: Runner) {
    this.#known = new LRUCache<string, Identity>({
      ...{ max: WORKSPACES_MAX, ttl: KNOWN_MS },
      fetchMethod: (workspace) => read(queryRunner, workspace),
      // Somebody may set another one meanwhile: that one stays known.
      ignoreFetchAbort: true,
    });
  }

  /** Requests of a workspace at the same time wait for one read. */
  readonly of = (workspace: string): Promise<Identity> => this.#known.forceFetch(workspace);

  /** Takes note of what was set: reads that begin now see it, also those of a server that does not have it yet. */
  note(workspace: string, identity: Identity): void {
    this.#known.set(workspace, identity);
  }
}

async function read(queryRunner: Runner, workspace: string): Promise<Identity> {
  const statement = (tables: Tables): Sql => newestQuery(tables, workspace);
  const [row] = await queryRunner.all({ kind: 'identity_default', urgent: true, workspace: '', statement });
  return row ? (row[0] as Identity) : IDENTITY_DEFAULT;
}

function newestQuery(tables: Tables, workspace: string): Sql {
  return {
    sql: `SELECT identity FROM ${tables.identitySettingsOf('of')} ORDER BY set_at DESC, identity DESC LIMIT 1`,
    params: { ...tables.params, of: workspace },
  };
}
