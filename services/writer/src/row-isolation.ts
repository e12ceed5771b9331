import { ClickHouseError } from '@clickhouse/client';
import { ROW_FORMAT } from '@sluice/shared/rows';
import type { DeadLetter } from './dead-letters/dead-letter.ts';
import { type Line, linesOf, type RowMessage } from './row-batch.ts';
import type { Session } from './session.ts';
import { type NumberedRows, STATEMENTS } from './statements.ts';

/**
 * Errors of ClickHouse that a row causes, and that it will cause again: it cannot be parsed, a value does not fit its
 * column, a field is not known, or a constraint of the staging table does not hold.
 */
const ROW_FAULTS = new Set([
  '6',
  '25',
  '26',
  '27',
  '33',
  '38',
  '41',
  '53',
  '69',
  '72',
  '117',
  '131',
  '321',
  '376',
  '441',
  '467',
  '469',
]);

/** Of how many rows of a batch ClickHouse is asked why it does not take them: each takes a statement of its own. */
const REASONS_MAX = 100;

/** Whether loading failed because of the rows, rather than for a reason that may pass. */
export function isRowFault(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && ROW_FAULTS.has(error.code);
}

export interface IsolatedRows {
  /** The messages without the rows that cannot be stored. */
  readonly good: readonly RowMessage[];
  readonly bad: readonly DeadLetter[];
}

/**
 * Finds the rows that ClickHouse does not take: loads all of them, each with a number, into a temporary table without
 * constraints, has ClickHouse skip what it cannot read, and asks which have arrived and which break a constraint. That
 * takes a few statements, however many rows are bad.
 *
 * @throws ClickHouse's errors other than those of rows
 */
export async function isolateBadRows(session: Session, messages: readonly RowMessage[]): Promise<IsolatedRows> {
  const [first] = messages;
  if (!first) return { good: [], bad: [] };
  const statements = STATEMENTS.numbered[first.kind];
  const lines = linesOf(messages);
  const bad = new Map<Line, string>();
  const numbered: NumberedLine[] = [];
  for (const line of lines) {
    const read = numberLine(line, numbered.length);
    if (typeof read === 'string') bad.set(line, read);
    else if (read) numbered.push(read);
  }
  for (const [{ line }, reason] of await findBadLines(session, statements, numbered)) bad.set(line, reason);
  const kept = Map.groupBy(
    lines.filter((line) => !bad.has(line)),
    ({ message }) => message,
  );
  return {
    good: [...kept].map(([message, rest]) => ({ ...message, value: Buffer.concat(rest.map(({ bytes }) => bytes)) })),
    bad: lines.flatMap((line) => (bad.has(line) ? [deadLetter(line, bad.get(line) as string)] : [])),
  };
}

interface NumberedLine {
  readonly number: number;
  readonly line: Line;
  /** The row, with its number as one more field. */
  readonly bytes: Buffer;
}

/**
 * A line with a number, or the reason why it cannot be a row: ClickHouse would take `[{…}]` and `{…};` alone, but not
 * among others, and after a line that is not JSON it may skip more than that line. `undefined` for an empty line, which
 * ClickHouse ignores.
 */
function numberLine(line: Line, number: number): NumberedLine | string | undefined {
  const row = rowOf(line);
  if (row.length === 0) return undefined;
  const notAnObject = 'NOT_AN_OBJECT: the line is not one JSON object';
  if (row[0] !== 0x7b || row.at(-1) !== 0x7d) return notAnObject;
  try {
    const fields = Object.keys(JSON.parse(row.toString()) as object).length;
    const field = `{"line":${number}${fields > 0 ? ',' : ''}`;
    return { number, line, bytes: Buffer.concat([Buffer.from(field), row.subarray(1), Buffer.from('\n')]) };
  } catch (error) {
    return `${notAnObject}: ${(error as Error).message}`.slice(0, 1_000);
  }
}

/** The bad ones of the lines, with the reasons. */
async function findBadLines(
  session: Session,
  statements: NumberedRows,
  lines: readonly NumberedLine[],
): Promise<Map<NumberedLine, string>> {
  const bad = new Map<NumberedLine, string>();

  async function load(some: readonly NumberedLine[], how: 'load' | 'loadSkipping'): Promise<string | undefined> {
    await session.run(statements.create);
    try {
      const chunks = some.map(({ bytes }) => bytes);
      await session.load(statements[how], chunks);
      return undefined;
    } catch (error) {
      if (!isRowFault(error)) throw error;
      return `${error.type}: ${error.message}`.slice(0, 1_000);
    }
  }

  async function search(some: readonly NumberedLine[]): Promise<void> {
    if (some.length === 0) return;
    const reason = await load(some, 'loadSkipping');
    if (reason === undefined) {
      const arrived = await session.read<{ line: number; violated: string }>(statements.readArrived);
      const violated = new Map(arrived.map((row) => [row.line, row.violated]));
      await addBad(
        some.filter(({ number }) => !violated.has(number)),
        some.filter(({ number }) => violated.get(number)),
        violated,
      );
    } else if (some.length === 1) bad.set(some[0] as NumberedLine, reason);
    else {
      // An error of a row that ClickHouse cannot skip.
      const middle = Math.floor(some.length / 2);
      await search(some.slice(0, middle));
      await search(some.slice(middle));
    }
  }

  async function addBad(
    skipped: readonly NumberedLine[],
    violating: readonly NumberedLine[],
    violated: ReadonlyMap<number, string>,
  ): Promise<void> {
    for (const line of violating) bad.set(line, `VIOLATED_CONSTRAINT: ${violated.get(line.number)}`);
    let example: string | undefined;
    for (const [index, line] of skipped.entries()) {
      const reason = index < REASONS_MAX ? await load([line], 'load') : undefined;
      example ??= reason;
      const others = `INCORRECT_DATA: ClickHouse takes neither this row nor ${skipped.length - 1} others of its batch; one of them: ${example}`;
      bad.set(line, reason ?? others);
    }
  }

  await search(lines);
  return bad;
}

/** Without its line feed. */
function rowOf({ bytes }: Line): Buffer {
  return bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes;
}

function deadLetter(line: Line, reason: string): DeadLetter {
  const { value: _value, ...place } = line.message;
  return { ...place, format: ROW_FORMAT, line: line.index, row: rowOf(line), reason };
}
