import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { DICTIONARIES_MAX, FAST_PROPERTIES_MAX } from '@sluice/shared/clickhouse/fast-properties';
import { FAST_SETS_MAX, Purge, SerialQueue, Setting, type SettingTable } from '../../store/store.ts';

/** Where the lists of workspaces are stored, each with the names by column. */
export const FAST_LISTS: SettingTable = { name: 'console_fast_properties', value: 'names', time: 'declared_at' };

/** Forgets the oldest lists of workspaces that have had very many: what rows have of these is read as text. */
export const PURGE = `
DELETE FROM console_fast_properties
WHERE (workspace_id, fast_set) IN (
  SELECT workspace_id, fast_set
  FROM (SELECT workspace_id, fast_set, max(declared_at) AS newest FROM console_fast_properties GROUP BY workspace_id, fast_set)
  ORDER BY newest DESC
  LIMIT ${FAST_SETS_MAX}, 1000000 BY workspace_id
)`;

/** What workspaces declare as fast (docs/design/decisions/0113-fast-properties.md). Its methods throw Problems. */
export class FastProperties {
  readonly #lists: Setting<readonly string[]>;
  readonly #changes = new SerialQueue();
  readonly #purge: Purge;

  /** @param client with the account that stores what the console keeps */
  constructor(client: ClickHouseClient) {
    this.#lists = new Setting(client, FAST_LISTS, 'The server that stores what is declared');
    this.#purge = new Purge(client, [PURGE]);
  }

  /** Returns the names of the properties of a workspace, in the order of their columns. */
  async of(workspace: string): Promise<readonly string[]> {
    return (await this.#columns(workspace)).filter((name) => name !== '');
  }

  /**
   * Declares properties in place of those from before. Those that stay keep their columns.
   *
   * @param findVaried returns those of some names that have many different values
   */
  async put(
    workspace: string,
    names: readonly string[],
    findVaried: (names: readonly string[]) => Promise<ReadonlySet<string>>,
  ): Promise<readonly string[]> {
    await this.#changes.run(workspace, async () => {
      const before = await this.#columns(workspace);
      const added = names.filter((name) => !before.includes(name));
      const columns = columnsFor(names, before, await findVaried(added));
      if (columns.join('\0') === before.join('\0')) return;
      await this.#lists.put(workspace, columns);
      void this.#purge.run();
    });
    return await this.of(workspace);
  }

  /** Returns the name of each column; empty ones are free. */
  async #columns(workspace: string): Promise<readonly string[]> {
    return (await this.#lists.of(workspace)) ?? [];
  }
}

/**
 * Returns the columns of properties, of which some had columns before. Where the columns of its kind are taken, a property gets another one:
 * the answers are the same.
 *
 * @param varied those with many different values
 */
export function columnsFor(
  names: readonly string[],
  before: readonly string[],
  varied: ReadonlySet<string>,
): readonly string[] {
  const columns = Array.from({ length: FAST_PROPERTIES_MAX }, (_, index) => {
    const name = before[index] ?? '';
    return names.includes(name) ? name : '';
  });
  for (const name of names.filter((one) => !columns.includes(one))) {
    const free = columns.indexOf('', varied.has(name) ? DICTIONARIES_MAX : 0);
    columns[free < 0 ? columns.indexOf('') : free] = name;
  }
  return columns.slice(0, columns.findLastIndex((name) => name !== '') + 1);
}
