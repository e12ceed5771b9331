import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Attributes, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api';
import { connectionHint, withHint } from '@sluice/shared/base/connection-hints';
import type { Logger } from '@sluice/shared/base/log';
import { loginHeaders, tlsAgent } from '@sluice/shared/clickhouse/connection';
import { ErrorCodes } from '@sluice/shared/clickhouse/error-codes';
import type { ClickHouseConfig } from '@sluice/shared/config';
import { markFailed } from '@sluice/shared/tracing/failed-span';
import { ATTRIBUTE, QUERY_ID, tracer } from '@sluice/shared/tracing/tracer';
import { type QuerySettings, SEVERAL_SERVERS_SETTINGS } from './query-settings.ts';
import { readAhead } from './read-ahead.ts';
import { ClickHouseException, ConnectionFailure, exceptionIn, QueryTooLong } from './read-failures.ts';
import type { Sql } from './sql.ts';
import { formOf, queryStringOf, refuseTooLong } from './statement-request.ts';
import type { StatementWatch } from './statement-slot.ts';

/**
 * How long an unused connection is kept, in milliseconds. Servers close one after 3 s (the older default of
 * keep_alive_timeout): close it before they do.
 */
const IDLE_MS_MAX = 2_000;

/** How much of the body of an error response is read, in characters. */
const ERROR_CHARACTERS_MAX = 16 * 1_024;

/** How long a server may take to say whether it runs a statement, in milliseconds. */
const ASKING_MS_MAX = 5_000;

const RUNS_ALREADY = new ErrorCodes('QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING');

export interface ReadRequest extends Sql, TracedQuery {
  /** No other query that runs may have it. */
  readonly queryId: string;
  /** Settings of this query, besides those of the reader. */
  readonly settings: QuerySettings;
  /** Ends the query, in ClickHouse too. */
  readonly signal: AbortSignal;
  /** Whether the statement reads several servers. Default false. */
  readonly onSeveralServers?: boolean;
  /** Settings of the request, besides those of the reader. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The format of the result of a statement that names none. Default: that of `read`. */
  readonly format?: string;
  /** Called with the length of each piece of text before its rows are parsed. What it throws ends the query. */
  readonly onText?: ((characters: number) => void) | undefined;
  /** Called with the bytes that ClickHouse has read for the statement until it sent the first rows, once all have come. */
  readonly onRead?: ((bytes: number) => void) | undefined;
  /** Is told whether the statement has ended. Default: nobody is. */
  readonly watch?: StatementWatch | undefined;
}

/**
 * Reads from ClickHouse over HTTP, and nothing else: a page needs a fraction of what a complete client does for it
 * (docs/design/decisions/0017-reading-from-clickhouse.md).
 */
export interface ClickHouseReader {
  /**
   * Sends a query and returns its rows, as they arrive and no faster than they are taken. The query ends when the
   * reader stops before the last row. It is sent again when the server had just closed the idle connection that it was
   * sent on.
   *
   * @throws {ClickHouseException} ClickHouse's error, also when it comes in the middle of the rows
   * @throws {ConnectionFailure}
   * @throws {QueryTooLong}
   * @throws the reason of the signal
   */
  read(request: ReadRequest): RowBatches;
  /**
   * Sends a query whose SQL ends with a FORMAT, or which has a `format`, and returns the bytes of its result as they arrive;
   * otherwise as `read`.
   */
  readBytes(request: ReadRequest): AsyncGenerator<Buffer, void, undefined>;
  /** Reads from the same server for statements of clients, as an account of their own. Default: there is no such account. */
  readonly sqlReader?: ClickHouseReader | undefined;
  /** Closes the connections, also those for statements of clients. */
  close(): void;
}

export interface ReaderOptions {
  readonly connectionsMax: number;
  /** Settings of every query. */
  readonly settings: QuerySettings;
  /** Is told of changed files of TLS. Default: nobody is. */
  readonly logger?: Logger | undefined;
  /** For statements of clients. Default: there are none. */
  readonly sqlReader?: ClickHouseReader | undefined;
}

/** Reads from the configured database. */
export class HttpClickHouseReader implements ClickHouseReader {
  readonly sqlReader: ClickHouseReader | undefined;
  readonly #url: URL;
  readonly #request: typeof requestHttp;
  readonly #agent: HttpAgent;
  readonly #headers: Readonly<Record<string, string>>;
  /** Attributes of the span of every query. */
  readonly #attributes: Attributes;
  readonly #settings: QuerySettings;
  /** The part of every query string, besides the settings. */
  readonly #common: QuerySettings;
  /** The same and the settings: what almost every query string begins with. */
  readonly #beginning: string;

  /** @throws {TlsFilesError} when the files of TLS cannot be used */
  constructor(config: ClickHouseConfig, { connectionsMax, settings, logger, sqlReader }: ReaderOptions) {
    this.sqlReader = sqlReader;
    this.#url = new URL(config.CLICKHOUSE_URL);
    const options = { keepAlive: true, maxSockets: connectionsMax, timeout: IDLE_MS_MAX };
    const agent = tlsAgent(config, options, logger);
    this.#request = agent ? requestHttps : requestHttp;
    this.#agent = agent ?? new HttpAgent(options);
    this.#headers = { ...loginHeaders(config), 'user-agent': 'sluice-query-api' };
    this.#attributes = serverAttributes(config);
    this.#settings = settings;
    this.#common = { database: config.CLICKHOUSE_DATABASE, default_format: 'JSONCompactEachRow' };
    this.#beginning = queryStringOf({ ...settings, ...this.#common });
  }

  read(query: ReadRequest): RowBatches {
    const rows = this.#receive(query, (response) => parseRows(textOf(response, query.onText)));
    return withQuerySpan(query, this.#attributes, rows);
  }

  readBytes(query: ReadRequest): AsyncGenerator<Buffer, void, undefined> {
    const bytes = this.#receive(query, (response) =>
      collectMinorGarbage(resultBytes(readAhead(chunksOf<Buffer>(response)), exceptionTagOf(response))),
    );
    return withQuerySpan(query, this.#attributes, bytes);
  }

  close(): void {
    this.sqlReader?.close();
    this.#agent.destroy();
  }

  async *#receive<Item>(
    query: ReadRequest,
    parse: (response: IncomingMessage) => AsyncIterable<Item>,
  ): AsyncGenerator<Item, void, undefined> {
    const { response, queryId } = await this.#send(query);
    try {
      if (response.statusCode !== 200) throw await failureOf(response);
      yield* parse(response);
      // A response that was closed looks like one that ended.
      query.signal.throwIfAborted();
      query.watch?.onEnd(queryId);
      query.onRead?.(bytesReadFor(response));
    } catch (error) {
      query.signal.throwIfAborted();
      if (error instanceof ClickHouseException) query.watch?.onEnd(queryId);
      else if (error instanceof ConnectionFailure) query.watch?.onLost(queryId);
      throw query.onSeveralServers && isServerLost(error) ? connectionFailure(error) : error;
    }
  }

  async #send(query: ReadRequest): Promise<{ readonly response: IncomingMessage; readonly queryId: string }> {
    for (let attempt = 1; ; attempt += 1) {
      query.signal.throwIfAborted();
      // ClickHouse may still hold the id of an attempt whose connection broke.
      const queryId = attempt === 1 ? query.queryId : `${query.queryId}/${attempt}`;
      const sent = this.#open({ ...query, queryId });
      query.watch?.onSent({ id: queryId, isRunning: () => this.#isRunning(queryId) });
      try {
        return { response: await responseTo(sent), queryId };
      } catch (error) {
        query.signal.throwIfAborted();
        query.watch?.onLost(queryId);
        if (!sent.reusedSocket || (error as NodeJS.ErrnoException).code !== 'ECONNRESET')
          throw connectionFailure(error);
      }
    }
  }

  /**
   * Sends a statement with the id of another: ClickHouse refuses it while that one is in its list of processes, whatever the
   * account may read, and tells that one to end, as KILL QUERY does.
   */
  async #isRunning(queryId: string): Promise<boolean> {
    const signal = AbortSignal.timeout(ASKING_MS_MAX);
    const rows = this.read({ queryId, sql: 'SELECT 1', params: {}, settings: {}, signal });
    try {
      for await (const _ of rows);
      return false;
    } catch (error) {
      if (error instanceof ClickHouseException && RUNS_ALREADY.has(error.code)) return true;
      throw error;
    }
  }

  #open(query: ReadRequest): ClientRequest {
    const { path, body, headers } = query.onSeveralServers ? this.#formOf(query) : this.#textOf(query);
    const { protocol, hostname, port } = this.#url;
    return this.#request({
      ...{ agent: this.#agent, headers: { ...this.#headers, ...headers }, signal: query.signal, method: 'POST' },
      ...{ protocol, hostname: hostname.replace(/^\[|\]$/g, ''), port },
      path,
    }).end(body);
  }

  #textOf({ queryId, settings, params, sql, headers = {}, format }: ReadRequest): Message {
    const common = { ...this.#settings, ...this.#common };
    const beginning = format === undefined ? this.#beginning : queryStringOf({ ...common, default_format: format });
    const path = `/?${beginning}&${queryStringOf({ ...settings, query_id: queryId }, params)}`;
    refuseTooLong(path, sql);
    return { path, body: sql, headers };
  }

  #formOf({ queryId, settings, params, sql }: ReadRequest): Message {
    const all = { ...this.#settings, ...settings, ...SEVERAL_SERVERS_SETTINGS };
    const { body, contentType } = formOf({ sql, params }, all);
    const path = `/?${queryStringOf({ ...all, ...this.#common, query_id: queryId })}`;
    return { path, body, headers: { 'content-type': contentType } };
  }
}

/** What is sent for a query. */
interface Message {
  readonly path: string;
  readonly body: string;
  /** Besides those of every query. */
  readonly headers?: Readonly<Record<string, string>>;
}

const SERVER_LOST = new ErrorCodes('ATTEMPT_TO_READ_AFTER_EOF');

/** Whether a server lost the connection to another one. Where there is one, the same error means that data are damaged. */
function isServerLost(error: unknown): boolean {
  return error instanceof ClickHouseException && SERVER_LOST.has(error.code);
}

/** Returns what ClickHouse says that it has read; 0 where it does not say. */
function bytesReadFor({ headers }: IncomingMessage): number {
  const summary = JSON.parse(String(headers['x-clickhouse-summary'] ?? '{}')) as { readonly read_bytes?: string };
  return Number(summary.read_bytes ?? 0);
}

/** Returns the random text of a response that comes before an exception in it. */
function exceptionTagOf({ headers }: IncomingMessage): string {
  return String(headers['x-clickhouse-exception-tag'] ?? '');
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    // Errors after the response are those of the response.
    request.on('error', reject);
  });
}

async function* textOf(
  response: IncomingMessage,
  onText?: ReadRequest['onText'],
): AsyncGenerator<string, void, undefined> {
  response.setEncoding('utf8');
  for await (const text of chunksOf<string>(response)) {
    onText?.(text.length);
    yield text;
  }
}

async function* chunksOf<Chunk>(response: IncomingMessage): AsyncGenerator<Chunk, void, undefined> {
  try {
    yield* response;
  } catch (error) {
    throw connectionFailure(error);
  }
}

/** How a server says that a request is too long: a proxy by its status, ClickHouse in words. */
const TOO_LONG: ReadonlySet<number | undefined> = new Set([413, 414, 431]);
const URI_TOO_LONG = /URI .*too long/;

/** Returns ClickHouse's exception, or what a proxy in front of it responded. */
async function failureOf(response: IncomingMessage): Promise<Error> {
  let text = '';
  for await (const chunk of textOf(response)) {
    text += chunk;
    if (text.length >= ERROR_CHARACTERS_MAX) break;
  }
  const { statusCode } = response;
  const exception = exceptionIn(text);
  if (exception) return exception;
  const isTooLong = TOO_LONG.has(statusCode) || (statusCode === 400 && URI_TOO_LONG.test(text));
  return isTooLong
    ? new QueryTooLong(`the query is too long for ClickHouse, or for a proxy in front of it: HTTP ${statusCode}`)
    : new ConnectionFailure(`ClickHouse cannot be reached: HTTP ${statusCode}`);
}

function connectionFailure(cause: unknown): ConnectionFailure {
  return new ConnectionFailure(withHint((cause as Error).message, connectionHint(cause)), { cause });
}

/** How many bytes may pass between two collections. */
const BYTES_MAX = 4 * 1_024 * 1_024;

type CollectGarbage = (options: { readonly type: 'minor' }) => void;

/** V8 collects young garbage before it has learned that it holds many bytes outside of its heap. */
function exposed(): CollectGarbage {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as CollectGarbage;
}

let collectGarbage: CollectGarbage | undefined;

/**
 * Forwards chunks, and collects young garbage every few MiB. Node.js reads each 64 KiB into a buffer of its own, and its
 * HTTP client copies it into another. V8 lets some 100 MB of them pile up, and then collects its whole heap again and again.
 */
async function* collectMinorGarbage(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  collectGarbage ??= exposed();
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > BYTES_MAX) {
      bytes = 0;
      collectGarbage({ type: 'minor' });
    }
    yield chunk;
  }
}

/** What the span of a query needs. */
export interface TracedQuery {
  readonly queryId: string;
  /** The span of its request, and the name of its own, a child of that. Default: it has none. */
  readonly traced?: { readonly request: Span; readonly name: string } | undefined;
}

/** Returns the attributes of every query. */
export function serverAttributes({ CLICKHOUSE_URL, CLICKHOUSE_DATABASE }: ClickHouseConfig): Attributes {
  const { hostname, port, protocol } = new URL(CLICKHOUSE_URL);
  return {
    [ATTRIBUTE.databaseSystem]: 'clickhouse',
    [ATTRIBUTE.databaseNamespace]: CLICKHOUSE_DATABASE,
    [ATTRIBUTE.serverAddress]: hostname,
    [ATTRIBUTE.serverPort]: Number(port) || (protocol === 'https:' ? 443 : 80),
  };
}

/** Gives a query a span from its start to its last row, if its request has one. */
export function withQuerySpan<Item>(
  query: TracedQuery,
  server: Attributes,
  items: AsyncGenerator<Item, void, undefined>,
): AsyncGenerator<Item, void, undefined> {
  const { queryId, traced } = query;
  if (!traced) return items;
  const attributes = { ...server, [ATTRIBUTE.querySummary]: traced.name, [QUERY_ID]: queryId };
  return inSpan(traced.request, traced.name, attributes, items);
}

async function* inSpan<Item>(
  request: Span,
  name: string,
  attributes: Attributes,
  items: AsyncGenerator<Item, void, undefined>,
): AsyncGenerator<Item, void, undefined> {
  const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, trace.setSpan(ROOT_CONTEXT, request));
  try {
    yield* items;
  } catch (error) {
    if (error instanceof ClickHouseException) span.setAttribute(ATTRIBUTE.databaseStatus, String(error.code));
    markFailed(span, (error as Error).name);
    throw error;
  } finally {
    span.end();
  }
}

/** How much of an exception is read, in characters. */
const EXCEPTION_CHARACTERS_MAX = 16 * 1_024;

/**
 * Returns the bytes of a result in any format, as they arrive.
 *
 * ClickHouse appends an exception that it meets after it has begun its response: `\r\n__exception__\r\n<tag>\r\n` and the
 * message. Each chunk is held back until the next one has come, so that no byte of an exception is ever returned.
 *
 * @param tag the random text of this response that precedes an exception; empty when ClickHouse named none
 * @throws {ClickHouseException} what ClickHouse appended
 * @throws {ConnectionFailure} when the response breaks off
 */
export async function* resultBytes(
  chunks: AsyncIterable<Buffer>,
  tag: string,
): AsyncGenerator<Buffer, void, undefined> {
  const marker = Buffer.from(`\r\n__exception__\r\n${tag}`);
  let held: Buffer = Buffer.alloc(0);
  let exception: string | undefined;
  try {
    for await (const chunk of chunks) {
      if (exception !== undefined) {
        exception += chunk.toString('utf8', 0, EXCEPTION_CHARACTERS_MAX - exception.length);
        continue;
      }
      const tail = held.subarray(-marker.length);
      const seam = Buffer.concat([tail, chunk.subarray(0, marker.length)]);
      // A marker may lie across several short chunks.
      const joins = chunk.length < marker.length || seam.includes(marker);
      const ready = joins ? held.subarray(0, held.length - tail.length) : held;
      if (ready.length > 0) yield ready;
      held = joins ? Buffer.concat([tail, chunk]) : chunk;
      const exceptionAt = held.indexOf(marker);
      if (exceptionAt >= 0) exception = held.toString('utf8', exceptionAt, exceptionAt + EXCEPTION_CHARACTERS_MAX);
    }
  } catch (error) {
    // ClickHouse may close the connection after an exception.
    if (exception === undefined) throw error;
  }
  if (exception !== undefined) {
    throw exceptionIn(exception) ?? new ConnectionFailure('ClickHouse ended its response with an unknown error');
  }
  if (held.length > 0) yield held;
}

/** One row: its columns in the order of the SELECT. */
export type Row = readonly unknown[];

/** Rows in batches, as they arrive. */
export type RowBatches = AsyncGenerator<readonly Row[], void, undefined>;

/**
 * Parses a response in the format JSONCompactEachRow, a line for each row.
 *
 * ClickHouse appends an exception that it meets after it has begun its response:
 * `\r\n__exception__\r\n<tag>\r\nCode: 395. DB::Exception: …`. A row cannot contain `\r`, since JSON escapes it.
 *
 * @throws {ClickHouseException} what ClickHouse appended
 * @throws {ConnectionFailure} when the response breaks off
 */
async function* parseRows(chunks: AsyncIterable<string>): RowBatches {
  let line = '';
  let exception: string | undefined;
  try {
    for await (const chunk of chunks) {
      if (exception !== undefined) {
        exception += chunk.slice(0, EXCEPTION_CHARACTERS_MAX - exception.length);
        continue;
      }
      const exceptionAt = chunk.indexOf('\r');
      const rows = exceptionAt < 0 ? chunk : chunk.slice(0, exceptionAt);
      if (exceptionAt >= 0) exception = chunk.slice(exceptionAt, exceptionAt + EXCEPTION_CHARACTERS_MAX);
      const end = rows.lastIndexOf('\n');
      if (end < 0) {
        line += rows;
        continue;
      }
      const complete = line + rows.slice(0, end);
      line = rows.slice(end + 1);
      yield JSON.parse(`[${complete.replaceAll('\n', ',')}]`) as readonly Row[];
    }
  } catch (error) {
    // ClickHouse may close the connection after an exception.
    if (exception === undefined) throw error;
  }
  if (exception !== undefined) {
    throw exceptionIn(exception) ?? new ConnectionFailure('ClickHouse ended its response with an unknown error');
  }
  if (line !== '') throw new ConnectionFailure('the response of ClickHouse broke off');
}
