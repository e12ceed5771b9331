import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { NAMING, type Naming } from '../../records/records.ts';
import { ConsoleDocuments, orStoreAway } from '../views/console-documents.ts';

/** Each workspace has one naming at most. */
const ID = '00000000-0000-4000-8000-000000000000';

/** What the users and organizations of all workspaces are called by, beside saved views. Its methods throw Problems. */
export class Namings {
  readonly #documents: ConsoleDocuments<Naming>;

  /** @param client with the account that stores them */
  constructor(client: ClickHouseClient) {
    this.#documents = new ConsoleDocuments(client, 'naming');
  }

  /** Returns the naming of a workspace, the default where it has stored none. */
  async of(workspace: string): Promise<Naming> {
    const stored = await orStoreAway(this.#documents.find(workspace, ID));
    return stored?.content ?? NAMING;
  }

  /** Stores the naming of a workspace in place of the one before, whatever the clock was that dated that. */
  async put(workspace: string, naming: Naming): Promise<void> {
    const changed = await orStoreAway(this.#documents.change(workspace, ID, async () => naming));
    if (!changed) await orStoreAway(this.#documents.save(workspace, ID, naming, Date.now()));
  }
}
