import { ClickHouseError } from '@clickhouse/client';
import { ErrorCodes } from '@sluice/shared/clickhouse/error-codes';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import { errorTypeOf } from '@sluice/storage/protocol/dead-letter';
import { isObject, type Line, linesOf, type RowMessage, withoutLineFeed } from '@sluice/storage/protocol/row-batch';
import { type DividedRows, takeOut } from './set-aside.ts';
import { NUMBERED_ROWS, type NumberedRowStatements } from './staging-tables.ts';

/**
 * The errors that a row causes, and will cause again: it cannot be parsed, a value does not fit its column, a field is
 * unknown, or it violates a constraint of the staging table.
 */
const ROW_ERRORS = new ErrorCodes(
  'CANNOT_PARSE_TEXT',
  'CANNOT_PARSE_ESCAPE_SEQUENCE',
  'CANNOT_PARSE_QUOTED_STRING',
  'CANNOT_PARSE_INPUT_ASSERTION_FAILED',
  'CANNOT_READ_ALL_DATA',
  'CANNOT_PARSE_DATE',
  'CANNOT_PARSE_DATETIME',
  'CANNOT_PARSE_NUMBER',
  'CANNOT_PARSE_UUID',
  'CANNOT_PARSE_BOOL',
  'CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING',
  'TYPE_MISMATCH',
  'ARGUMENT_OUT_OF_BOUND',
  'VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE',
  'TOO_LARGE_STRING_SIZE',
  'INCORRECT_DATA',
  'VIOLATED_CONSTRAINT',
);

/** For how many skipped rows of a batch ClickHouse is asked for the reason: each takes a statement of its own. */
const REASONS_MAX = 100;

/**
 * What ends each line. ClickHouse reads 36 bytes of a UUID, also where it is shorter and the last value of its row: without
 * the spaces it would skip the next row with this one.
 */
const LINE_END = Buffer.from(`${' '.repeat(64)}\n`);

/** Returns whether loading failed because of the rows, and not for a reason that may pass. */
export function isRowError(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && ROW_ERRORS.has(error.code);
}

/**
 * Finds the rows that ClickHouse cannot store, in a few statements, however many rows are bad:
 *
 * 1. Each row gets a number, as one more field.
 * 2. All rows are loaded into a temporary table without constraints, while ClickHouse skips what it cannot parse.
 * 3. ClickHouse returns the numbers of the loaded rows, each with the constraint that it violates. A row whose number is
 *    missing was skipped.
 *
 * @throws ClickHouse's errors other than those that rows cause
 */
export async function isolateBadRows(session: TemporaryTables, messages: readonly RowMessage[]): Promise<DividedRows> {
  const [first] = messages;
  if (!first) return { kept: [], deadLetters: [] };
  const lines = linesOf(messages);
  const bad = new Map<Line, string>();
  const numbered: NumberedLine[] = [];
  for (const line of lines) {
    const read = numberLine(line, numbered.length);
    if (typeof read === 'string') bad.set(line, read);
    else if (read) numbered.push(read);
  }
  const search = new BadLineSearch(session, NUMBERED_ROWS[first.kind]);
  for (const [{ line }, reason] of await search.run(numbered)) bad.set(line, reason);
  return takeOut(lines, bad);
}

interface NumberedLine {
  readonly number: number;
  readonly line: Line;
  /** The row, with its number as one more field. */
  readonly bytes: Buffer;
}

/**
 * Returns a line with its number; the reason why it is no row; or `undefined` for an empty line, which ClickHouse
 * ignores.
 *
 * A line must be one JSON object. ClickHouse would take two objects on one line as two rows, and after a line that is not
 * JSON it may skip more than that line.
 */
function numberLine(line: Line, number: number): NumberedLine | string | undefined {
  const row = withoutLineFeed(line.bytes);
  if (row.length === 0) return undefined;
  const notAnObject = 'NOT_AN_OBJECT: the line is not one JSON object';
  if (!isObject(row)) return notAnObject;
  try {
    const fields = Object.keys(JSON.parse(row.toString()) as object).length;
    const field = `{"line":${number}${fields > 0 ? ',' : ''}`;
    return { number, line, bytes: Buffer.concat([Buffer.from(field), row.subarray(1), LINE_END]) };
  } catch (error) {
    return `${notAnObject}: ${(error as Error).message}`.slice(0, 1_000);
  }
}

/** Finds the bad ones among numbered lines, with the reasons. */
class BadLineSearch {
  readonly #session: TemporaryTables;
  readonly #statements: NumberedRowStatements;
  readonly #bad = new Map<NumberedLine, string>();

  constructor(session: TemporaryTables, statements: NumberedRowStatements) {
    this.#session = session;
    this.#statements = statements;
  }

  async run(lines: readonly NumberedLine[]): Promise<ReadonlyMap<NumberedLine, string>> {
    await this.#search(lines);
    return this.#bad;
  }

  async #search(lines: readonly NumberedLine[]): Promise<void> {
    const [first] = lines;
    if (!first) return;
    const reason = await this.#load(lines, 'loadSkipping');
    if (reason === undefined) await this.#addSkipped(await this.#addViolating(lines));
    else if (lines.length === 1) this.#bad.set(first, reason);
    else {
      // ClickHouse cannot skip this error of a row.
      const middle = Math.floor(lines.length / 2);
      await this.#search(lines.slice(0, middle));
      await this.#search(lines.slice(middle));
    }
  }

  /** Adds those of the lines that were loaded and violate a constraint. Returns the lines that were not loaded. */
  async #addViolating(lines: readonly NumberedLine[]): Promise<NumberedLine[]> {
    const loaded = await this.#session.read<{ line: number; violated: string }>(this.#statements.readLoaded);
    const violated = new Map(loaded.map((row) => [row.line, row.violated]));
    for (const line of lines) {
      const constraint = violated.get(line.number);
      if (constraint) this.#bad.set(line, `VIOLATED_CONSTRAINT: ${constraint}`);
    }
    return lines.filter(({ number }) => !violated.has(number));
  }

  /**
   * Adds the skipped lines that ClickHouse does not take alone either. It may skip a good line after a bad one: when it
   * takes one of the first hundred alone, the others are tried alone as well.
   */
  async #addSkipped(skipped: readonly NumberedLine[]): Promise<void> {
    let example: string | undefined;
    let triesMax = REASONS_MAX;
    for (const [index, line] of skipped.entries()) {
      const isTried = index < triesMax;
      const reason = isTried ? await this.#load([line], 'load') : undefined;
      if (isTried && reason === undefined) {
        triesMax = skipped.length;
        await this.#addViolating([line]);
        continue;
      }
      example ??= reason;
      // Only the kind of the error: its message quotes the row of somebody else, who may be of another workspace.
      const others = `INCORRECT_DATA: ClickHouse takes neither this row nor ${skipped.length - 1} others of its batch; the error of one of them: ${errorTypeOf(example ?? '')}`;
      this.#bad.set(line, reason ?? others);
    }
  }

  /** Loads lines into an empty table, and returns ClickHouse's error if a row causes one. */
  async #load(lines: readonly NumberedLine[], how: 'load' | 'loadSkipping'): Promise<string | undefined> {
    await this.#session.run(this.#statements.create);
    try {
      const chunks = lines.map(({ bytes }) => bytes);
      await this.#session.load(this.#statements[how], chunks);
      return undefined;
    } catch (error) {
      if (!isRowError(error)) throw error;
      return `${error.type}: ${error.message}`.slice(0, 1_000);
    }
  }
}
