import { callsByName, isAggregateName, isAllowedFunction, isAllowedTableFunction } from './allowed-functions.ts';
import { notAllowed } from './statement-check.ts';

// EXPLAIN QUERY TREE says what ClickHouse has made of the names of a statement: which functions it calls, also those that were named
// in another way than by a call, and which tables it reads. The views are tables here, not what they select.

/** Names may have line breaks and whatever else. So a row has to be one that ClickHouse writes for what is allowed, to its end. */
const FUNCTION = /^ *FUNCTION id: \d+, (?:alias: \w+, )?function_name: (\w+), function_type: /;
const TABLE = / table_name: (.+?)(?:, final: [01](?:, sample_size: [\d /]+)?(?:, sample_offset: [\d /]+)?)?$/;
/** What a recursive CTE has so far. */
const RECURSION =
  /^ *TABLE id: \d+, (?:alias: \w+, )?table_name: _temporary_and_external_tables\._tmp_[-\da-f]{36}, temporary_/;
const TABLE_FUNCTION = / table_function_name: (\w+)$/;

/** A constant that names an aggregate function. */
const NAME = /^ *CONSTANT id: \d+, constant_value: ('.*'), constant_value_type: String$/;

/** The type of an aggregate function's state. */
const STATE = /AggregateFunction\((?:\d+, )?([^,()]*)/g;

/** What ClickHouse calls itself: an aggregate function of nothing but NULL. */
const OWN = new Set(['nothing', 'nothingNull', 'nothingUInt64']);

/** What is between the row of a function and that of its first argument. */
const BEFORE_ARGUMENT = [/^ *ARGUMENTS *$/, /^ *LIST id: \d+, nodes: \d+$/];

/** Checks the rows of EXPLAIN QUERY TREE, one after the other. */
export class ResolvedCheck {
  readonly #tables: ReadonlySet<string>;
  readonly #errors = new Set<string>();
  /** What the next rows have to be. */
  #expected: RegExp[] = [];

  /** @param database of the views */
  constructor(database: string, views: readonly string[]) {
    // Where there is no FROM, ClickHouse reads a table of one row.
    this.#tables = new Set([...views.map((view) => `${database}.${view}`), 'system.one']);
  }

  /** Takes the next row. */
  add(row: string): void {
    const [, kind] = /^ *([A-Z_]+) id: /.exec(row) ?? [];
    const next = this.#expected.shift();
    if (next === NAME) this.#expect(isAggregateName(NAME.exec(row)?.[1] ?? ''), 'an aggregate function by a name');
    else if (next) this.#expect(next.test(row), 'an aggregate function by a name');
    if (kind === 'FUNCTION') this.#addFunction(FUNCTION.exec(row)?.[1]);
    if (kind === 'TABLE') this.#expect(this.#isAllowedTable(row), 'a table besides the views');
    if (kind === 'TABLE_FUNCTION')
      this.#expect(isAllowedTableFunction(TABLE_FUNCTION.exec(row)?.[1] ?? ''), 'a table function');
    if (kind === 'IDENTIFIER') this.#expect(false, 'a name that is not resolved');
    for (const [, name = ''] of row.matchAll(STATE)) this.#addFunction(name);
  }

  /** @throws {Problem} `invalid_sql`, naming every error of the rows so far */
  refuse(): void {
    if (this.#expected.length > 0) this.#expect(false, 'an aggregate function by a name');
    if (this.#errors.size > 0) throw notAllowed([...this.#errors]);
  }

  #isAllowedTable(row: string): boolean {
    return this.#tables.has(TABLE.exec(row)?.[1] ?? '') || RECURSION.test(row);
  }

  #addFunction(name: string | undefined): void {
    const isAllowed = name !== undefined && (isAllowedFunction(name) || OWN.has(name));
    this.#expect(isAllowed, `the function ${name ?? 'with a name that is not a word'}`);
    if (name && callsByName(name)) this.#expected = [...BEFORE_ARGUMENT, NAME];
  }

  #expect(isAllowed: boolean, used: string): void {
    if (!isAllowed) this.#errors.add(`uses ${used}, which is not allowed`);
  }
}
