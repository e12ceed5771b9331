import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { type FormResponse, formSender, type SendForm, type SentTable } from './form-request.ts';
import { bytesOfBlocks, type NativeBlock, readBlocks, rowsOf } from './native-blocks.ts';
import { NOT_RECORDED } from './ownership.ts';
import type { JsonRows, Statement, TemporaryTable } from './statement.ts';
import { ANSWERING_SERVER } from './statements.ts';
import { type Parameters, settingsOfStatements, type TemporaryTables } from './temporary-tables.ts';

/** What may no longer store anything once it is over. */
export interface Attempt {
  readonly group: string;
  readonly incarnation: number;
  readonly generation: number;
  /** A UUID. */
  readonly attempt: string;
}

/**
 * The condition that an attempt may still store: no newer epoch is recorded, the attempt is not recorded as ended, and the replica that looks is
 * recorded: whoever ends an attempt looks for its statements at those (shared-replicas.ts). A sub-select is looked up before anything else, also
 * where there are no rows, and when `system.processes` has the statement.
 */
const MAY_STORE = `(
  SELECT throwIf(
    (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) + throwIf((SELECT count() FROM ended_batches WHERE id = {attempt:UUID}) > 0, 'the attempt has ended')
    + throwIf(${ANSWERING_SERVER} NOT IN (SELECT replica FROM writer_replicas FINAL WHERE NOT is_gone), '${NOT_RECORDED}')
) = 0`;

/** An INSERT with its columns, and its SELECT. */
const INSERT = /^([\s\S]*?^INSERT INTO \w+ \([^)]*\)\n)([\s\S]+)$/m;

/**
 * Returns an INSERT that stores nothing once its attempt may not.
 *
 * @param sql an INSERT with its columns and a SELECT
 * @returns a statement that binds `group`, `incarnation`, `generation` and `attempt` as well
 * @throws {Error} for another statement
 */
export function fenced({ name, sql }: Statement): string {
  const [, insert, select] = INSERT.exec(sql) ?? [];
  if (insert === undefined) throw new Error(`${name} is no INSERT that names its columns and has a SELECT`);
  return `${insert}SELECT * FROM (\n${select}\n)\nWHERE ${MAY_STORE}`;
}

/** The rows of a temporary table. */
interface CarriedRows {
  readonly table: TemporaryTable;
  readonly blocks: readonly NativeBlock[];
}

/** Parameters of the HTTP interface are sent like settings. */
const AS_BLOCKS = { default_format: 'Native' } as unknown as ClickHouseSettings;
/** ClickHouse would write all of a response to its disk before it sends any. Rows that are read from the request alone fail before the first. */
const AT_ONCE = { wait_end_of_query: 0 } as unknown as ClickHouseSettings;
const AS_JSON = { default_format: 'JSONEachRow' } as unknown as ClickHouseSettings;

/**
 * Temporary tables without a session, for a load balancer that sends each statement to another server. The process keeps the rows. With each
 * statement it sends those columns of the tables which the text names, as external tables of a form; what fills a table is a SELECT whose
 * rows come back.
 *
 * ClickHouse reads a form before it counts the statement among its processes, where KILL QUERY finds it. So whatever was sent may
 * begin at any later time. What stores rows looks up whether its {@link Attempt} may still store them, once it can be killed.
 */
export class CarriedTables implements TemporaryTables {
  readonly #send: SendForm;
  readonly #queryIdPrefix: string;
  readonly #settings: ClickHouseSettings;
  readonly #attempt: Attempt | undefined;
  readonly #tables = new Map<string, CarriedRows>();

  /**
   * @param send sends a statement to any server
   * @param queryIdPrefix the query ids of its statements are this, the name of the statement and a UUID
   * @param statementTimeoutMs the time after which ClickHouse itself cancels a statement, from when it has read the form
   * @param settings of all its statements
   * @param attempt whose statements store nothing once it may not. Default: they store whenever they arrive
   */
  constructor(
    send: SendForm,
    queryIdPrefix: string,
    statementTimeoutMs: number,
    settings: ClickHouseSettings = {},
    attempt?: Attempt,
  ) {
    this.#send = send;
    this.#queryIdPrefix = queryIdPrefix;
    this.#attempt = attempt;
    this.#settings = { ...settingsOfStatements(statementTimeoutMs), ...settings };
  }

  /** @throws what `work` throws */
  static async use<Result>(
    client: ClickHouseClient,
    queryIdPrefix: string,
    statementTimeoutMs: number,
    work: (tables: CarriedTables) => Promise<Result>,
  ): Promise<Result> {
    return await work(new CarriedTables(formSender(client), queryIdPrefix, statementTimeoutMs));
  }

  async run(statement: Statement, parameters?: Parameters, settings?: ClickHouseSettings): Promise<void> {
    await this.#run(statement, parameters, settings);
  }

  async wroteRows(statement: Statement, parameters?: Parameters): Promise<boolean> {
    return (await this.#run(statement, parameters)) !== 0;
  }

  async runLast(statement: Statement, parameters: Parameters, settings: ClickHouseSettings): Promise<void> {
    await this.#run(statement, parameters, settings);
    await this.close();
  }

  async load(
    statement: Statement,
    chunks: readonly Uint8Array[],
    parameters: Parameters = {},
  ): Promise<number | undefined> {
    const { name, step } = statement;
    switch (step?.does) {
      case 'load': {
        const sent = [jsonRows(step.rows, chunks)];
        const settings = { ...AT_ONCE, ...step.settings };
        return this.#add(step.table, await this.#readBlocks(name, step.select, sent, parameters, settings));
      }
      case 'store':
        return await this.#store({ name, sql: step.sql }, [jsonRows(step.rows, chunks)], parameters);
      default:
        throw new Error(`${name} takes no rows`);
    }
  }

  async read<Row>(statement: Statement, parameters?: Parameters, settings?: ClickHouseSettings): Promise<Row[]> {
    return await Array.fromAsync(this.#rows<Row>(statement, parameters, settings));
  }

  stream<Row>(statement: Statement, parameters?: Parameters): AsyncGenerator<Row> {
    return this.#rows<Row>(statement, parameters);
  }

  /** Forgets the rows. */
  async close(): Promise<void> {
    this.#tables.clear();
  }

  /** Returns how many rows it wrote; `undefined` where ClickHouse does not say. */
  async #run(
    { name, sql, step }: Statement,
    parameters: Parameters = {},
    settings?: ClickHouseSettings,
  ): Promise<number | undefined> {
    switch (step?.does) {
      case 'create':
        this.#tables.set(step.table.name, { table: step.table, blocks: [] });
        return 0;
      case 'replace':
      case 'append': {
        const sent = this.#tablesIn(step.select);
        const blocks = await this.#readBlocks(name, step.select, sent, parameters, settings);
        if (step.does === 'replace') this.#tables.delete(step.table.name);
        return this.#add(step.table, blocks);
      }
      default:
        return await this.#store({ name, sql }, this.#tablesIn(sql), parameters, settings);
    }
  }

  #add(table: TemporaryTable, blocks: readonly NativeBlock[]): number {
    const before = this.#tables.get(table.name)?.blocks ?? [];
    this.#tables.set(table.name, { table, blocks: [...before, ...blocks] });
    return rowsOf(blocks);
  }

  async #store(
    statement: Statement,
    sent: readonly SentTable[],
    parameters: Parameters,
    settings?: ClickHouseSettings,
  ): Promise<number | undefined> {
    const text = this.#attempt ? fenced(statement) : statement.sql;
    const own = { ...this.#attempt, ...parameters };
    const { stream, summary } = await this.#post(statement.name, text, sent, own, settings);
    for await (const _ of stream);
    return summary && Number(summary.written_rows);
  }

  async #readBlocks(
    name: string,
    select: string,
    sent: readonly SentTable[],
    parameters: Parameters,
    settings?: ClickHouseSettings,
  ): Promise<readonly NativeBlock[]> {
    const { stream } = await this.#post(name, select, sent, parameters, { ...AS_BLOCKS, ...settings });
    return readBlocks(await buffer(stream));
  }

  async *#rows<Row>(
    { name, sql }: Statement,
    parameters: Parameters = {},
    settings?: ClickHouseSettings,
  ): AsyncGenerator<Row> {
    const sent = this.#tablesIn(sql);
    const { stream } = await this.#post(name, sql, sent, parameters, { ...AS_JSON, ...settings });
    for await (const line of linesOf(stream)) yield JSON.parse(line) as Row;
  }

  /** Returns the tables whose names a text has, with the columns whose names it has. */
  #tablesIn(sql: string): SentTable[] {
    const isNamed = (name: string) => new RegExp(`\\b${name}\\b`).test(sql);
    const hasAll = /\bSELECT (\w+\.)?\*/.test(sql);
    return [...this.#tables.values()]
      .filter(({ table }) => isNamed(table.name))
      .map(({ table, blocks }) => {
        const named = Object.entries(table.columns).filter(([name]) => hasAll || isNamed(name));
        const columns = named.length > 0 ? Object.fromEntries(named) : table.columns;
        const chunks = [...bytesOfBlocks(blocks, Object.keys(columns))];
        return { name: table.name, format: 'Native', columns, chunks };
      });
  }

  async #post(
    name: string,
    query: string,
    tables: readonly SentTable[],
    parameters: Parameters,
    settings: ClickHouseSettings = {},
  ): Promise<FormResponse> {
    return await this.#send({
      query,
      query_id: `${this.#queryIdPrefix}/${name}/${randomUUID()}`,
      query_params: { ...parameters },
      clickhouse_settings: { ...this.#settings, ...settings },
      tables,
    });
  }
}

function jsonRows({ name, fields }: JsonRows, chunks: readonly Uint8Array[]): SentTable {
  return { name, format: 'JSONEachRow', columns: fields, chunks };
}

/** Returns the lines of a response. JSON has no line feed within a line, and may have other characters that end one for readline. */
async function* linesOf(stream: Readable): AsyncGenerator<string> {
  let open: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', start)) {
      yield Buffer.concat([...open, chunk.subarray(start, end)]).toString();
      open = [];
      start = end + 1;
    }
    open.push(chunk.subarray(start));
  }
}
