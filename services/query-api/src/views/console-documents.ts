import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { orUnavailable } from '../or-unavailable.ts';

/** What the console keeps for a workspace. */
export type DocumentKind = 'view' | 'dashboard' | 'link';

/** A document as it is stored. Times in milliseconds since 1970. */
export interface StoredDocument<Content> {
  readonly workspace: string;
  readonly id: string;
  readonly content: Content;
  readonly createdAtMs: number;
  readonly changedAtMs: number;
}

/** The documents of a kind that are not deleted. The conditions are true for an empty parameter. */
const STORED_DOCUMENTS = `
SELECT workspace_id AS workspace, toString(id) AS document, content,
  toUnixTimestamp64Milli(created_at) AS created_at_ms, toUnixTimestamp64Milli(changed_at) AS changed_at_ms
FROM console_documents FINAL
WHERE kind = {kind:String} AND NOT is_deleted
  AND ({workspace:String} = '' OR workspace_id = {workspace:String})
  AND (empty({ids:Array(String)}) OR has({ids:Array(String)}, toString(id)))
ORDER BY created_at, document`;

/** Nothing of what is removed counts any more: the row of the deletion is newer than every other one of its document. */
const PURGE = [
  'DELETE FROM console_documents WHERE NOT is_deleted AND id IN (SELECT id FROM console_documents WHERE is_deleted)',
  // Late, since a change may have been under way.
  `DELETE FROM console_documents
WHERE is_deleted AND changed_at < now64(6) + toIntervalDay(36525) - toIntervalHour(1)`,
] as const;

/** How much later than now the row of a deletion is dated, in milliseconds: no change that comes later is above it. */
const DELETED_LATER_MS = 36_525 * 86_400_000;

/**
 * How long a statement may take, in milliseconds. The client has a time of its own, but it begins with the connection: while
 * the server is silent, requests would wait for each other.
 */
const STATEMENT_MS_MAX = 10_000;

/**
 * Returns what work with documents gives. Events may be read all the same: they may be on other servers.
 *
 * @throws {Problem} those of the work, and `store_unavailable` for any other error
 */
export function orStoreAway<Result>(work: Promise<Result>): Promise<Result> {
  return orUnavailable(work, 'The server that stores saved views');
}

interface StoredRow {
  readonly workspace: string;
  readonly document: string;
  readonly content: string;
  readonly created_at_ms: number;
  readonly changed_at_ms: number;
}

/** The documents of one kind. Its methods throw ClickHouse's errors. */
export class ConsoleDocuments<Content extends object> {
  readonly #client: ClickHouseClient;
  readonly #kind: DocumentKind;
  readonly #statementMsMax: number;

  constructor(client: ClickHouseClient, kind: DocumentKind, statementMsMax = STATEMENT_MS_MAX) {
    this.#client = client;
    this.#kind = kind;
    this.#statementMsMax = statementMsMax;
  }

  /** Returns the documents of a workspace, oldest first; of an empty name those of all workspaces. */
  list(workspace: string): Promise<readonly StoredDocument<Content>[]> {
    return this.#read(workspace, []);
  }

  /** Returns the documents of a workspace that have one of these ids. */
  async some(workspace: string, ids: readonly string[]): Promise<readonly StoredDocument<Content>[]> {
    return ids.length === 0 ? [] : await this.#read(workspace, ids);
  }

  async find(workspace: string, id: string): Promise<StoredDocument<Content> | undefined> {
    const [found] = await this.#read(workspace, [id.toLowerCase()]);
    return found;
  }

  async save(workspace: string, id: string, content: Content, createdAtMs: number): Promise<void> {
    await this.#insert([{ workspace, id, content, createdAtMs }], false);
  }

  /** Deletes them for good, whatever is stored of them afterwards. */
  async delete(documents: readonly StoredDocument<Content>[]): Promise<void> {
    if (documents.length === 0) return;
    await this.#insert(documents, true);
    // What remains is removed with the next one that is deleted.
    for (const query of PURGE) await this.#client.command({ query, ...this.#limit() }).catch(() => undefined);
  }

  async #insert(documents: readonly Omit<StoredDocument<Content>, 'changedAtMs'>[], isDeleted: boolean): Promise<void> {
    const values = documents.map(({ workspace, id, content, createdAtMs }) => ({
      ...{ kind: this.#kind, workspace_id: workspace, id, created_at: createdAtMs, is_deleted: isDeleted },
      content: isDeleted ? '' : JSON.stringify(content),
      ...(isDeleted && { changed_at: (Date.now() + DELETED_LATER_MS) * 1_000 }),
    }));
    await this.#client.insert({ table: 'console_documents', values, format: 'JSONEachRow', ...this.#limit() });
  }

  #limit() {
    return { abort_signal: AbortSignal.timeout(this.#statementMsMax) };
  }

  async #read(workspace: string, ids: readonly string[]): Promise<readonly StoredDocument<Content>[]> {
    const query_params = { kind: this.#kind, workspace, ids };
    const query = { query: STORED_DOCUMENTS, query_params, format: 'JSONEachRow', ...this.#limit() } as const;
    const result = await this.#client.query(query);
    return (await result.json<StoredRow>()).map((row) => ({
      ...{ workspace: row.workspace, id: row.document, content: JSON.parse(row.content) as Content },
      ...{ createdAtMs: row.created_at_ms, changedAtMs: row.changed_at_ms },
    }));
  }
}
