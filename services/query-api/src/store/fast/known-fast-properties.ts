import { LRUCache } from 'lru-cache';
import type { QueryRunner } from '../query-runner.ts';
import type { Sql } from '../sql.ts';
import type { FastSet, FastSets, Tables } from '../tables.ts';

/**
 * How old what is known may be before it is read again, in milliseconds. Nothing that was known once becomes wrong: a set of a row says
 * what its columns have, for ever. Of a newer set too little is known until then, and its rows are read as text.
 */
const FRESH_MS = 10_000;

/** How many workspaces are known at most. */
const WORKSPACES_MAX = 1_000;

/** How many sets of a workspace are known, the newest. Rows of older ones are read as text. */
export const FAST_SETS_MAX = 64;

interface Known {
  readonly readAt: number;
  readonly sets: FastSets;
}

/** Knows what workspaces have declared as fast. */
export class KnownFastProperties {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #known = new LRUCache<string, Known>({ max: WORKSPACES_MAX });
  readonly #reads = new Map<string, Promise<FastSets>>();

  constructor(queryRunner: Pick<QueryRunner, 'all'>) {
    this.#queryRunner = queryRunner;
  }

  /** Returns the sets of a workspace, the newest first. Only the first request of a workspace waits for them. */
  readonly fastSets = async (workspace: string): Promise<FastSets> => {
    const known = this.#known.get(workspace);
    if (known && performance.now() - known.readAt < FRESH_MS) return known.sets;
    const reading = this.#reads.get(workspace) ?? this.#read(workspace);
    this.#reads.set(workspace, reading);
    return known?.sets ?? (await reading);
  };

  /** A read that fails leaves what was known. */
  async #read(workspace: string): Promise<FastSets> {
    let sets = this.#known.get(workspace)?.sets ?? [];
    try {
      const rows = (await this.#queryRunner.all({
        ...{ kind: 'fast_properties', urgent: true, workspace: '' },
        statement: (tables) => fastSetsQuery(tables, workspace),
      })) as unknown as [string, readonly string[]][];
      sets = rows.map(([id, names]): FastSet => ({ id, names }));
    } catch {
      // Without it all is read as text, or as it was known before.
    }
    this.#known.set(workspace, { readAt: performance.now(), sets });
    this.#reads.delete(workspace);
    return sets;
  }
}

function fastSetsQuery(tables: Tables, workspace: string): Sql {
  return {
    sql: `SELECT toString(row_set), argMax(names, declared_at)
FROM ${tables.fastPropertiesOf('of')}
GROUP BY row_set
ORDER BY max(declared_at) DESC
LIMIT ${FAST_SETS_MAX}`,
    params: { ...tables.params, of: workspace },
  };
}
