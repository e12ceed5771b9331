import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ClickHouseSettings, CommandResult } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { inLargeChunks } from './large-chunks.ts';
import { STATEMENTS, type Statement } from './statements.ts';
import { type Parameters, settingsOfStatements, type TemporaryTables } from './temporary-tables.ts';

/** How long ClickHouse keeps an abandoned session with its temporary tables, in seconds. */
const SESSION_TIMEOUT_SECONDS = 60;

/** The client's types do not know these: they are parameters of the HTTP interface, sent like settings. */
const CLOSING = { close_session: 1 } as unknown as ClickHouseSettings;
const GOING_ON = { session_check: 1 } as unknown as ClickHouseSettings;

/**
 * A session of ClickHouse. No other session sees its temporary tables, and they are gone when it is closed. It stays on the server on which
 * it began: another one, which a load balancer may send a later statement to, refuses that.
 */
export class ClickHouseSession implements TemporaryTables {
  readonly #client: ClickHouseClient;
  readonly #queryIdPrefix: string;
  readonly #sessionId = randomUUID();
  readonly #settings: ClickHouseSettings;
  #hasBegun = false;

  /**
   * @param queryIdPrefix the query ids of its statements are this, the name of the statement and a UUID
   * @param statementTimeoutMs the time after which ClickHouse itself cancels a statement
   * @param settings of all its statements
   */
  constructor(
    client: ClickHouseClient,
    queryIdPrefix: string,
    statementTimeoutMs: number,
    settings: ClickHouseSettings = {},
  ) {
    this.#client = client;
    this.#queryIdPrefix = queryIdPrefix;
    this.#settings = {
      session_timeout: SESSION_TIMEOUT_SECONDS,
      ...settingsOfStatements(statementTimeoutMs),
      ...settings,
    } as unknown as ClickHouseSettings;
  }

  /**
   * Works in a session, and closes it. After an error it stays open until ClickHouse forgets it.
   *
   * @throws what `work` throws, and ClickHouse's errors
   */
  static async use<Result>(
    client: ClickHouseClient,
    queryIdPrefix: string,
    statementTimeoutMs: number,
    work: (session: ClickHouseSession) => Promise<Result>,
  ): Promise<Result> {
    const session = new ClickHouseSession(client, queryIdPrefix, statementTimeoutMs);
    const result = await work(session);
    await session.close();
    return result;
  }

  /** Runs a statement. `settings` are added to those of the session. @throws ClickHouse's errors */
  async run(statement: Statement, parameters?: Parameters, settings?: ClickHouseSettings): Promise<void> {
    await this.#send(statement, parameters, settings);
  }

  /** As {@link run}, and returns whether it wrote rows; true where ClickHouse does not say. */
  async wroteRows(statement: Statement, parameters?: Parameters): Promise<boolean> {
    return (await this.#send(statement, parameters))?.written_rows !== '0';
  }

  /** As {@link run}, and closes the session. @throws ClickHouse's errors; then it may still be open */
  async runLast(statement: Statement, parameters: Parameters, settings: ClickHouseSettings): Promise<void> {
    await this.#send(statement, parameters, { ...settings, ...CLOSING });
  }

  /**
   * Sends bytes to an INSERT, and returns how many rows they held; `undefined` where ClickHouse does not say.
   *
   * @throws ClickHouse's errors
   */
  async load(
    statement: Statement,
    chunks: readonly Uint8Array[],
    parameters: Parameters = {},
  ): Promise<number | undefined> {
    const values = Readable.from(inLargeChunks(chunks), { objectMode: false });
    const request = { ...this.#requestOf(statement), query_params: { ...parameters } };
    const { stream, summary } = await this.#client.exec({ ...request, values });
    for await (const _ of stream);
    return summary && Number(summary.written_rows);
  }

  /** Returns the rows of a SELECT. `settings` are added to those of the session. @throws ClickHouse's errors */
  async read<Row>(statement: Statement, parameters: Parameters = {}, settings?: ClickHouseSettings): Promise<Row[]> {
    const request = { ...this.#requestOf(statement, settings), query_params: { ...parameters } };
    const result = await this.#client.query({ ...request, format: 'JSONEachRow' });
    return await result.json<Row>();
  }

  /** Returns the rows of a SELECT one after the other. The session does nothing else meanwhile. @throws ClickHouse's errors, before the first row */
  async *stream<Row>(statement: Statement, parameters: Parameters = {}): AsyncGenerator<Row> {
    const request = { ...this.#requestOf(statement), query_params: { ...parameters }, format: 'JSONEachRow' } as const;
    const result = await this.#client.query(request);
    for await (const rows of result.stream<Row>()) for (const row of rows) yield row.json();
  }

  /**
   * @param server the name of the server on which nothing of the session is to run any more; default: whichever answers
   * @throws ClickHouse's errors, also while a statement of the session is running, or when another server answers
   */
  async close(server = ''): Promise<void> {
    const clickhouse_settings = { ...this.#settings, ...CLOSING };
    const request = { session_id: this.#sessionId, query_params: { server }, clickhouse_settings };
    await this.#client.command({ query: STATEMENTS['close-session'].sql, ...request });
  }

  async #send(
    statement: Statement,
    parameters: Parameters = {},
    settings?: ClickHouseSettings,
  ): Promise<CommandResult['summary']> {
    const command = { ...this.#requestOf(statement, settings), query_params: { ...parameters } };
    return (await this.#client.command(command)).summary;
  }

  #requestOf({ name, sql }: Statement, settings: ClickHouseSettings = {}) {
    const goingOn = this.#hasBegun ? GOING_ON : {};
    this.#hasBegun = true;
    return {
      query: sql,
      session_id: this.#sessionId,
      query_id: `${this.#queryIdPrefix}/${name}/${randomUUID()}`,
      clickhouse_settings: { ...this.#settings, ...goingOn, ...settings },
    };
  }
}
