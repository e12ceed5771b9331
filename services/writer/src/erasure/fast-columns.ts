import {
  FAST_LIST,
  FAST_PROPERTIES_MAX,
  fastColumn,
  fastSet,
  fastValues,
  usedColumns,
} from '@sluice/shared/clickhouse/fast-properties';
import { requireNoRemovals } from '@sluice/storage/clickhouse/removals';
import type { Statement } from '@sluice/storage/clickhouse/statements';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import type { WriterConfig } from '../config.ts';
import { ERASURE_TIMEOUT_MS } from './erasure.ts';
import { Rounds, type RoundsDependencies } from './rounds.ts';
import { STATEMENTS } from './statements.ts';

export type FastConfig = Pick<WriterConfig, 'ERASURE_INTERVAL_MS' | 'RETENTION_INTERVAL_MS'>;

/** How many workspaces one statement fills columns of. ClickHouse keeps the names of their properties in its text. */
const WORKSPACES_MAX = 100;

/** What a workspace has declared. */
interface Declared {
  readonly workspace: string;
  /** A number of 64 bits. */
  readonly set: string;
  readonly names: readonly string[];
}

/**
 * Fills the columns of fast properties of events from before they were declared, in the background, and empties those of what was
 * withdrawn. Until then the text of these events is read.
 *
 * Once in RETENTION_INTERVAL_MS it looks for partitions of the table, which are months or years, with such events, and rewrites these columns
 * of the parts that have some, the newest first. A statement fills those of many workspaces: it reads the text of all events of these parts. So
 * however often workspaces declare something, a part is rewritten once in that time. Months on the cold volume stay as they are.
 */
export class FastColumns extends Rounds {
  readonly #deps: RoundsDependencies;

  constructor(config: FastConfig, deps: RoundsDependencies) {
    super(
      {
        intervalMs: config.ERASURE_INTERVAL_MS,
        restMs: config.RETENTION_INTERVAL_MS,
        what: 'filling columns of fast properties',
      },
      deps,
    );
    this.#deps = deps;
  }

  /** Fills all that is to be filled now. @throws {RemovalRunning}, and ClickHouse's errors: the next round goes on */
  async takeRound(): Promise<void> {
    const { client, writerId } = this.#deps;
    await this.useTables(client, `sluice-writer/${writerId}-fast`, ERASURE_TIMEOUT_MS, async (session) => {
      const declared = await session.read<Declared>(STATEMENTS['read-declared-properties']);
      for (let from = 0; from < declared.length; from += WORKSPACES_MAX) {
        await this.#fill(session, declared.slice(from, from + WORKSPACES_MAX));
      }
    });
  }

  async #fill(session: TemporaryTables, declared: readonly Declared[]): Promise<void> {
    const sets = { workspaces: declared.map(({ workspace }) => workspace), sets: declared.map(({ set }) => set) };
    const found = await session.read<{ partition: string }>(STATEMENTS['find-unfilled-columns'], sets);
    for (const { partition } of found) {
      if (!this.mayGoOn) throw new Error('this writer no longer fills columns');
      await requireNoRemovals(session);
      await session.run(fillColumns(declared), { partition, ...sets, ...namesByColumn(declared) });
      this.#deps.logger.info({ partition }, 'filled the columns of fast properties');
    }
  }
}

function namesByColumn(declared: readonly Declared[]): Readonly<Record<string, readonly string[]>> {
  const entries = usedColumns(declared.map(({ names }) => names)).map((column) => [
    `names_${column}`,
    declared.map(({ names }) => names[column - 1] ?? ''),
  ]);
  return Object.fromEntries(entries);
}

/**
 * The statement that makes the columns of a partition those of what is declared. The values are those of store-events. ClickHouse knows no WITH
 * here, and keeps the parameters as the statement has them: it may outlive the session and the writer.
 */
function fillColumns(declared: readonly Declared[]): Statement {
  const used = usedColumns(declared.map(({ names }) => names));
  const nameOf = (column: number) => `{names_${column}:Array(String)}[${PLACE_OF_WORKSPACE}]`;
  const set = fastSet(LIST_OF_WORKSPACE, 'properties', fastValues('properties', used.map(nameOf)), used);
  const columns = Array.from({ length: FAST_PROPERTIES_MAX }, (_, index) => {
    const column = index + 1;
    return `${fastColumn(column)} = ${used.includes(column) ? `${fastValues('properties', [nameOf(column)])}[1]` : "''"}`;
  });
  return {
    name: 'fill-columns',
    sql: `
ALTER TABLE events
UPDATE fast_set = ${used.length === 0 ? '0' : set}, ${columns.join(', ')}
IN PARTITION ID {partition:String}
WHERE workspace_id IN {workspaces:Array(String)} AND ${FAST_LIST} != ${LIST_OF_WORKSPACE}`,
  };
}

const PLACE_OF_WORKSPACE =
  'transform(toString(workspace_id), {workspaces:Array(String)}, arrayEnumerate({workspaces:Array(String)}), toUInt32(0))';

/** As find-unfilled-columns has it. */
const LIST_OF_WORKSPACE =
  'transform(toString(workspace_id), {workspaces:Array(String)}, arrayMap(one -> toUInt64(one), {sets:Array(String)}), toUInt64(0))';
