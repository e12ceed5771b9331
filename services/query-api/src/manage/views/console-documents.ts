import { isDeepStrictEqual } from 'node:util';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { fittingIds, type ListedAt, type SizedRow } from '../../records/records.ts';
import { asUnavailable, changeStored, insertInPlaceOf, Purge, type Replaced, versionAfter } from '../../store/store.ts';

/** What the console keeps for a workspace. */
export type DocumentKind = 'view' | 'dashboard' | 'link' | 'segment' | 'naming';

/** A document as it is stored. Times in milliseconds since 1970. */
export interface StoredDocument<Content> {
  readonly workspace: string;
  readonly id: string;
  readonly content: Content;
  readonly createdAtMs: number;
  readonly changedAtMs: number;
  /** The row that the next change replaces. */
  readonly row: Replaced;
}

type NewDocument<Content> = Omit<StoredDocument<Content>, 'changedAtMs' | 'row'>;

/** Conditions on the sorting key may come before FINAL: all rows of a document meet them, or none. */
const OF_WORKSPACE = 'kind = {kind:String} AND workspace_id = {workspace:String}';

/** The conditions are true for an empty parameter. */
const STANDING = `NOT is_deleted
  AND ({dashboard:String} = '' OR JSONExtractString(content, 'dashboard') = {dashboard:String})`;

const COLUMNS = `workspace_id AS workspace, toString(id) AS document, content,
  toUnixTimestamp64Milli(created_at) AS created_at_ms, toUnixTimestamp64Micro(changed_at) AS changed_at_us`;

const NAMED_DOCUMENTS = `
SELECT ${COLUMNS}
FROM console_documents FINAL
PREWHERE ${OF_WORKSPACE} AND id IN {ids:Array(UUID)}
WHERE ${STANDING}
ORDER BY created_at, document`;

const COUNT = `
SELECT toUInt32(count()) AS count FROM console_documents FINAL
PREWHERE ${OF_WORKSPACE} WHERE ${STANDING}`;

/** The sizes of what comes after a document: of these, a page has what fits. */
const SIZES = `
SELECT toString(id) AS id, length(content) AS bytes
FROM console_documents FINAL
PREWHERE ${OF_WORKSPACE}
WHERE ${STANDING}
  AND (created_at, toString(id)) > (fromUnixTimestamp64Milli({after_ms:Int64}, 'UTC'), {after_id:String})
ORDER BY created_at, id
LIMIT {rows_max:UInt32}`;

/** What a tile needs of its view. */
const HEADS = `
SELECT toString(id) AS view, JSONExtractString(content, 'name') AS name, JSONExtractString(content, 'report') AS report,
  JSONExtract(content, 'parameters', 'form', 'Nullable(String)') AS form
FROM console_documents FINAL
PREWHERE ${OF_WORKSPACE} AND id IN {ids:Array(UUID)}
WHERE ${STANDING}`;

/**
 * The links with these hashes, of all workspaces. An index says which rows had one of them; whether it still holds is up to the
 * newest row of the document, which the sorting key finds.
 */
const LINKS = `
SELECT ${COLUMNS}
FROM console_documents FINAL
PREWHERE kind = 'link' AND (workspace_id, id) IN (
  SELECT workspace_id, id FROM console_documents
  WHERE kind = 'link' AND JSONExtractString(content, 'hash') IN {hashes:Array(String)}
)
WHERE NOT is_deleted AND JSONExtractString(content, 'hash') IN {hashes:Array(String)}
SETTINGS use_skip_indexes_if_final = 0`;

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
  return asUnavailable(work, 'The server that stores saved views');
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

interface StoredRow {
  readonly workspace: string;
  readonly document: string;
  readonly content: string;
  readonly created_at_ms: number;
  readonly changed_at_us: number;
}

/** Where a page begins and ends. */
export interface PageRequest {
  /** Documents at most. It ends earlier when they have {@link PAGE_BYTES}. */
  readonly limit: number;
  /** The document before the page. Default: none. */
  readonly after?: ListedAt | undefined;
  /** The dashboard that its links are of. Default: all documents. */
  readonly dashboard?: string | undefined;
}

export interface DocumentPage<Content> {
  /** Oldest first. */
  readonly documents: readonly StoredDocument<Content>[];
  readonly hasMore: boolean;
}

/** What a tile shows of its view. */
export interface ViewHead {
  readonly view: string;
  readonly name: string;
  readonly report: string;
  readonly form: string | null;
}

/** The documents of one kind. Its methods throw ClickHouse's errors. */
export class ConsoleDocuments<Content extends object> {
  readonly #client: ClickHouseClient;
  readonly #kind: DocumentKind;
  readonly #statementMsMax: number;
  readonly #purge: Purge;

  constructor(client: ClickHouseClient, kind: DocumentKind, statementMsMax = STATEMENT_MS_MAX) {
    this.#client = client;
    this.#kind = kind;
    this.#statementMsMax = statementMsMax;
    this.#purge = new Purge(client, PURGE);
  }

  /** Returns documents of a workspace. One document is there at least, unless there is none. */
  async page(workspace: string, { limit, after, dashboard = '' }: PageRequest): Promise<DocumentPage<Content>> {
    const sizes = await this.#read<SizedRow>(SIZES, {
      ...{ workspace, dashboard, after_ms: after?.createdAtMs ?? 0, after_id: after?.id ?? '', rows_max: limit + 1 },
    });
    const ids = fittingIds(sizes, limit);
    const rows = ids.length === 0 ? [] : await this.#read<StoredRow>(NAMED_DOCUMENTS, { workspace, ids });
    return { documents: rows.map((row) => this.#documentOf(row)), hasMore: ids.length < sizes.length };
  }

  /** Returns how many there are in a workspace, of links those of a dashboard. */
  async count(workspace: string, dashboard = ''): Promise<number> {
    const [row] = await this.#read<{ readonly count: number }>(COUNT, { workspace, dashboard });
    return row?.count ?? 0;
  }

  /** Returns what tiles show of the views of a workspace that have one of these ids. */
  async heads(workspace: string, ids: readonly string[]): Promise<readonly ViewHead[]> {
    return ids.length === 0 ? [] : await this.#read<ViewHead>(HEADS, { workspace, ids });
  }

  async find(workspace: string, id: string): Promise<StoredDocument<Content> | undefined> {
    const ids = [id.toLowerCase()].filter((one) => UUID.test(one));
    const [row] = ids.length === 0 ? [] : await this.#read<StoredRow>(NAMED_DOCUMENTS, { workspace, ids });
    return row && this.#documentOf(row);
  }

  /** Returns the links of all workspaces that have one of these hashes. */
  async ofHashes(hashes: readonly string[]): Promise<readonly StoredDocument<Content>[]> {
    return (await this.#read<StoredRow>(LINKS, { hashes })).map((row) => this.#documentOf(row));
  }

  /** Stores a new one. */
  async save(workspace: string, id: string, content: Content, createdAtMs: number): Promise<void> {
    await this.#insert([{ workspace, id, content, createdAtMs }], false);
  }

  /**
   * Changes a document as it is then, so that changes at once undo nothing of each other.
   *
   * @param change may be called several times
   * @returns what is stored; undefined if the workspace has no such document
   * @throws what `change` throws
   */
  async change(
    workspace: string,
    id: string,
    change: (content: Content) => Promise<Content>,
  ): Promise<StoredDocument<Content> | undefined> {
    return await changeStored(
      () => this.find(workspace, id),
      async (document) => {
        const content = await change(document.content);
        if (isDeepStrictEqual(content, document.content)) return false;
        const row = { ...this.#rowOf({ ...document, content }), changed_at: versionAfter(document.row) };
        await insertInPlaceOf(document.row, this.#client, 'console_documents', row, this.#limit().abort_signal);
        return true;
      },
    );
  }

  /** Deletes them for good, whatever is stored of them afterwards. Their rows are removed in a moment. */
  async delete(documents: readonly StoredDocument<Content>[]): Promise<void> {
    if (documents.length === 0) return;
    await this.#insert(documents, true);
    void this.#purge.run();
  }

  #rowOf({ workspace, id, content, createdAtMs }: NewDocument<Content>) {
    return {
      ...{ kind: this.#kind, workspace_id: workspace, id, content: JSON.stringify(content) },
      ...{ created_at: createdAtMs, is_deleted: false },
    };
  }

  async #insert(documents: readonly NewDocument<Content>[], isDeleted: boolean): Promise<void> {
    const deletion = { is_deleted: true, content: '', changed_at: (Date.now() + DELETED_LATER_MS) * 1_000 };
    const values = documents.map((document) => ({ ...this.#rowOf(document), ...(isDeleted && deletion) }));
    await this.#client.insert({ table: 'console_documents', values, format: 'JSONEachRow', ...this.#limit() });
  }

  #limit() {
    return { abort_signal: AbortSignal.timeout(this.#statementMsMax) };
  }

  async #read<Row>(query: string, params: Readonly<Record<string, unknown>>): Promise<readonly Row[]> {
    const result = await this.#client.query({
      ...{
        query,
        query_params: { kind: this.#kind, dashboard: '', ...params },
        format: 'JSONEachRow',
        ...this.#limit(),
      },
      // A statement that was given up ends in ClickHouse, too.
      clickhouse_settings: {
        max_execution_time: this.#statementMsMax / 1_000,
        cancel_http_readonly_queries_on_client_close: 1,
      },
    });
    return await result.json<Row>();
  }

  #documentOf(row: StoredRow): StoredDocument<Content> {
    return {
      ...{ workspace: row.workspace, id: row.document, content: JSON.parse(row.content) as Content },
      ...{ createdAtMs: row.created_at_ms, changedAtMs: Math.floor(row.changed_at_us / 1_000) },
      row: { id: `${this.#kind} ${row.document}`, version: row.changed_at_us },
    };
  }
}
