import { randomUUID } from 'node:crypto';
import { Problem } from '@sluice/shared/http/problem';
import { type QueryConfig, sqlDatabaseOf } from '../config.ts';
import { reserve } from '../http/http.ts';
import type { QueryMetrics } from '../metrics.ts';
import {
  AHEAD_BYTES_MAX,
  budgetSettings,
  ClickHouseException,
  type ClickHouseReader,
  type Deletion,
  DeletionsUnknown,
  measured,
  newestDeletions,
  type QueryRunner,
  type QuerySettings,
  type ReadRequest,
  type RequestContext,
  type RequestStore,
  readDeletedWithUsers,
  type StatementWatch,
  type Store,
  timeLimit,
  VALUE_CHARACTERS_MAX,
  type Visibility,
} from '../store/store.ts';
import { ResolvedCheck } from './resolved-check.ts';
import { SHOWS_SCALARS, sqlProblem, VIEWS } from './sql-error.ts';
import { SQL_FORMATS, type SqlRequest } from './sql-request.ts';
import { notAllowed, refuseOthers } from './statement-check.ts';
import { refuseTooLarge } from './statement-size.ts';

/** What a result on its way takes: what is read ahead of a slow client, and chunks, in bytes. */
const RESULT_BYTES = AHEAD_BYTES_MAX + 1_024 * 1_024;

/** How much of a request's id is part of a query's id, in characters. */
const REQUEST_ID_CHARACTERS_MAX = 64;

/** What makes ClickHouse parse a statement, and not run it. */
const EXPLAIN_SYNTAX = 'EXPLAIN AST graph = 1\n';

/** What makes ClickHouse resolve the names of a statement. It evaluates constant expressions and scalar sub-selects for that. */
const EXPLAIN_RESOLVED = 'EXPLAIN QUERY TREE passes = 1\n';

/** A statement within ClickHouse's limits of its text has fewer nodes. */
const EXPLAINED_ROWS_MAX = '1000000';

export interface SqlRunnerOptions {
  readonly config: QueryConfig;
  readonly queryRunner: Pick<QueryRunner, 'reportSlot' | 'all'>;
  readonly metrics: QueryMetrics;
}

/** The request of a statement. */
export interface SqlContext extends RequestContext {
  readonly store: RequestStore;
}

/** Runs statements of clients, each of one workspace, within the slots and the budget of a report. */
export class SqlRunner {
  readonly #options: SqlRunnerOptions;

  constructor(options: SqlRunnerOptions) {
    this.#options = options;
  }

  /**
   * Returns the bytes of a result as they arrive. The statement holds its slot until its last byte is taken or its time is up: a
   * slower client is cut off.
   *
   * @throws {Problem} `invalid_sql`, `sql_not_available`, `invalid_request`, `query_too_expensive`, `store_unavailable`,
   * `overloaded`, `internal`
   */
  bytes(request: SqlRequest, context: SqlContext): AsyncGenerator<Buffer, void, undefined> {
    const query = { ...context, kind: 'sql', pool: 'reports', graceMs: 0 } as const;
    return measured(this.#options.metrics, query, this.#bytesInSlot(request, context));
  }

  async *#bytesInSlot(request: SqlRequest, context: SqlContext): AsyncGenerator<Buffer, void, undefined> {
    const { config, queryRunner } = this.#options;
    const store = await context.store.current();
    const reader = readerOf(store);
    const slot = await queryRunner.reportSlot(context);
    const deadline = AbortSignal.timeout(config.QUERY_TIMEOUT_MS);
    const signals = [context.signal, deadline, store.givenUp].filter((signal) => signal !== undefined);
    const signal = AbortSignal.any(signals);
    // A client that has stopped reading does not come back to release the slot.
    signal.addEventListener('abort', slot.release);
    const memory = context.memory.part();
    try {
      reserve(memory, RESULT_BYTES);
      yield* this.#run(request, context, { store, reader, signal, watch: slot.watch(store.givenUp) });
    } catch (error) {
      const isLate = deadline.aborted && !(error instanceof ClickHouseException) && !(error instanceof Problem);
      throw isLate ? deadline.reason : sqlProblem(error, sqlDatabaseOf(config));
    } finally {
      memory?.release();
      signal.removeEventListener('abort', slot.release);
      slot.release();
    }
  }

  async *#run(
    { sql, params, format }: SqlRequest,
    { workspace, requestId, span, store: requested }: RequestContext,
    { store, reader, signal, watch }: Running,
  ): AsyncGenerator<Buffer, void, undefined> {
    const id = `query-api/sql/${requestId.slice(0, REQUEST_ID_CHARACTERS_MAX)}/${randomUUID()}`;
    const settings = { ...this.#limits(), log_comment: requestId };
    const traced = span && { request: span, name: 'sql' };
    const common = { params, settings, signal, traced, watch } as const;
    const explained = { ...common, settings: { ...settings, max_result_rows: EXPLAINED_ROWS_MAX } };
    await refuseUnlessAllowed(reader, sql, { ...explained, sql: `${EXPLAIN_SYNTAX}${sql}`, queryId: `${id}/ast` });
    // Decided when the statement has its slot: a deletion may be stored while it waits.
    const headers = await shownRows(workspace, store.visibility, async () =>
      readDeletedWithUsers(
        this.#options.queryRunner,
        workspace,
        { signal, store: requested },
        store.visibility.deletionsElsewhere?.(workspace),
      ),
    );
    const resolved = { sql: `${EXPLAIN_RESOLVED}${sql}`, queryId: `${id}/tree`, headers };
    await refuseUnlessResolved(reader, { ...explained, ...resolved }, sqlDatabaseOf(this.#options.config));
    const { clickHouse } = SQL_FORMATS[format];
    yield* reader.readBytes({ ...common, sql, headers, format: clickHouse, queryId: id });
  }

  #limits(): QuerySettings {
    const { config } = this.#options;
    return {
      ...timeLimit(config.QUERY_TIMEOUT_MS),
      ...budgetSettings(config),
      max_result_rows: String(config.SQL_RESULT_ROWS_MAX),
    };
  }
}

interface Running {
  readonly store: Store;
  readonly reader: ClickHouseReader;
  readonly signal: AbortSignal;
  /** Of the slot, which stays taken until all these statements have ended. */
  readonly watch: StatementWatch;
}

/** @throws {Problem} `invalid_sql` @throws {ClickHouseException} when it cannot be parsed */
async function refuseUnlessAllowed(reader: ClickHouseReader, sql: string, request: ReadRequest): Promise<void> {
  const graph: string[] = [];
  await explain(reader, request, EXPLAIN_SYNTAX, (row) => graph.push(row));
  const ast = syntaxTree(graph);
  if (!ast) throw notAllowed(['has a line break in a name']);
  refuseOthers(ast);
  refuseTooLarge(ast, sql);
}

/** @throws {Problem} `invalid_sql` @throws {ClickHouseException} when a name cannot be resolved */
async function refuseUnlessResolved(reader: ClickHouseReader, request: ReadRequest, database: string): Promise<void> {
  const check = new ResolvedCheck(database, VIEWS);
  const settings = { ...request.settings, [SHOWS_SCALARS]: '0' };
  await explain(reader, { ...request, settings }, EXPLAIN_RESOLVED, (row) => check.add(row));
  check.refuse();
}

/** Reads the rows of an EXPLAIN. Errors have places in the statement, rather than in the EXPLAIN of it. */
async function explain(
  reader: ClickHouseReader,
  request: ReadRequest,
  before: string,
  onRow: (row: string) => void,
): Promise<void> {
  try {
    for await (const rows of reader.read(request)) for (const [row] of rows) onRow(String(row));
  } catch (error) {
    if (!(error instanceof ClickHouseException)) throw error;
    const message = error.message
      .replace(/(?<=failed at position )\d+/, (position) => String(Number(position) - before.length))
      .replace(/(?<=\(line )\d+(?=, col \d+\))/, (line) => String(Number(line) - 1));
    throw new ClickHouseException(error.code, message);
  }
}

/** @throws {Problem} `sql_not_available` */
function readerOf({ tables: { onSeveralServers }, reader: { sqlReader } }: Store): ClickHouseReader {
  if (sqlReader && !onSeveralServers) return sqlReader;
  throw new Problem(
    'sql_not_available',
    onSeveralServers
      ? 'SQL is not available where servers have ranges of partitions.'
      : 'SQL is off: query-api needs CLICKHOUSE_SQL_USER and CLICKHOUSE_SQL_PASSWORD; docs/operate/secure.md#sql says how to turn it on.',
  );
}

// EXPLAIN AST indents a line for each node, and writes names as they are: a line break in a name would end the line, and what follows
// could look like another node. With `graph = 1` the nodes have addresses, which nobody can know beforehand, and edges between them.

const NODE = /^ {4}n(\d+)\[label="(.*)$/s;
const EDGE = /^ {4}n(\d+) -> n(\d+);$/;

/**
 * Returns the nodes of a statement, the root first and each before its children, as EXPLAIN AST writes them: indented by their depth.
 * One that has a line break in a name stays one.
 *
 * @param graph the lines of `EXPLAIN AST graph = 1`
 * @returns undefined when nodes are left over, so that a name looks like one
 */
export function syntaxTree(graph: readonly string[]): string[] | undefined {
  const labels = new Map<string, string>();
  const children = new Map<string, string[]>();
  let last: string | undefined;
  for (const line of graph) {
    const [, node, label = ''] = NODE.exec(line) ?? [];
    const [, parent, child] = EDGE.exec(line) ?? [];
    if (node) {
      labels.set(node, label);
      last = node;
    } else if (parent && child) {
      // A list may have 100,000 items.
      const known = children.get(parent);
      if (known) known.push(child);
      else children.set(parent, [child]);
      last = undefined;
    } else if (last) labels.set(last, `${labels.get(last)}\n${line}`);
  }
  const tree: string[] = [];
  const rest = new Set(labels.keys());
  const left = [{ node: labels.keys().next().value ?? '', depth: 0 }];
  for (let next = left.pop(); next; next = left.pop()) {
    const { node, depth } = next;
    tree.push(`${' '.repeat(depth)}${(labels.get(node) ?? '').replace(/"\];(\n\})?$/, '')}`);
    rest.delete(node);
    for (const child of (children.get(node) ?? []).reverse()) left.push({ node: child, depth: depth + 1 });
  }
  return rest.size === 0 ? tree : undefined;
}

/**
 * Returns the headers by which the row policies of `deploy/clickhouse/sql/accounts.xml` know which rows a statement may read.
 *
 * @param deletedWithUsers reads who is deleted with deleted users and has no deletion of its own yet
 * @throws {DeletionsUnknown} when there are more deletions than a header may have that this server does not have itself
 * @throws {Problem} `store_unavailable`, `overloaded` when it is not known what is deleted, or for how long events are kept
 */
export async function shownRows(
  workspace: string,
  { hiddenCondition, keptFrom, deletionsElsewhere, identities }: Visibility,
  deletedWithUsers: () => Promise<readonly Deletion[]>,
): Promise<Readonly<Record<string, string>>> {
  const [hidden, keptFromMs] = await Promise.all([hiddenCondition(workspace), keptFrom(workspace)]);
  const visitors = hidden && (await identities?.(workspace))?.areLinked ? await deletedWithUsers() : [];
  // The row policies look for one of each.
  const elsewhere = newestDeletions([...(deletionsElsewhere?.(workspace) ?? []), ...visitors]);
  return {
    'x-sluice-workspace': workspace,
    'x-sluice-deletions': hidden ? 'some' : 'none',
    'x-sluice-kept-from': keptFromMs === undefined ? 'all' : String(keptFromMs),
    ...(elsewhere.length > 0 && { 'x-sluice-deleted-users': deletedUsers(elsewhere) }),
  };
}

/** @throws {DeletionsUnknown} when ClickHouse would refuse the header for its length: that is over in some seconds */
function deletedUsers(deletions: readonly Deletion[]): string {
  const users = deletions.map(({ user, version }) => [user, version]);
  const header = Buffer.from(JSON.stringify(users)).toString('base64');
  if (header.length <= VALUE_CHARACTERS_MAX) return header;
  throw new DeletionsUnknown(`the server lacks ${users.length} deletions`);
}
