import { ClickHouseError } from '@clickhouse/client';
import { ROW_FORMAT } from '@sluice/shared/rows';
import { DEAD_LETTERS_MIN, type DeadLetter, TooManyDeadLetters } from './dead-letters/dead-letter.ts';
import { findBadLines } from './isolate.ts';
import { type Line, linesOf, type RowMessage } from './row-batch.ts';
import type { Session } from './session.ts';
import { STATEMENTS } from './statements.ts';

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

/** Whether loading failed because of the rows, rather than for a reason that may pass. */
export function isRowFault(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && ROW_FAULTS.has(error.code);
}

const NOT_AN_OBJECT = 'NOT_AN_OBJECT: the line is not one JSON object';

export interface IsolatedRows {
  /** The messages without the rows that cannot be stored. */
  readonly good: readonly RowMessage[];
  readonly bad: readonly DeadLetter[];
}

/**
 * Finds the rows that ClickHouse does not take, by loading halves of the messages into an empty staging table. ClickHouse
 * would take `[{…}]` and `{…};` alone, but not among others, so what does not look like one object is bad in any case.
 *
 * @throws {TooManyDeadLetters} when there are far too many of them
 * @throws ClickHouse's errors other than those of rows
 */
export async function isolateBadRows(session: Session, messages: readonly RowMessage[]): Promise<IsolatedRows> {
  const [first] = messages;
  if (!first) return { good: [], bad: [] };
  const { load, empty } = STAGING[first.kind];
  const lines = linesOf(messages);
  const badMax = Math.max(DEAD_LETTERS_MIN, lines.length / 100);
  let found = 0;

  async function check(some: readonly Line[]): Promise<string | undefined> {
    const reason = await refusal(some);
    if (reason !== undefined && some.length === 1) found += 1;
    if (found > badMax) throw new TooManyDeadLetters(`more than ${found} of ${lines.length} rows cannot be stored`);
    return reason;
  }

  async function refusal(some: readonly Line[]): Promise<string | undefined> {
    if (some.length > 1 && !some.every(isObject)) return NOT_AN_OBJECT;
    try {
      await session.load(
        load,
        some.map(({ bytes }) => bytes),
      );
      return some.every(isObject) ? undefined : NOT_AN_OBJECT;
    } catch (error) {
      if (!isRowFault(error)) throw error;
      return `${error.type}: ${error.message}`.slice(0, 1_000);
    } finally {
      await session.run(empty);
    }
  }

  const badLines = await findBadLines(lines, check);
  const bad = new Map(badLines.map(({ index, reason }) => [lines[index], reason]));
  const kept = Map.groupBy(
    lines.filter((line) => !bad.has(line)),
    ({ message }) => message,
  );
  return {
    good: [...kept].map(([message, rest]) => ({ ...message, value: Buffer.concat(rest.map(({ bytes }) => bytes)) })),
    bad: [...bad].map(([line, reason]) => deadLetter(line as Line, reason)),
  };
}

const STAGING = {
  events: { load: STATEMENTS.loadEvents, empty: STATEMENTS.emptyEvents },
  changes: { load: STATEMENTS.loadChanges, empty: STATEMENTS.emptyChanges },
} as const;

/** Whether a line can be one JSON object and nothing else; an empty one can be ignored. */
function isObject({ bytes }: Line): boolean {
  const text = bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes;
  return text.length === 0 || (text[0] === 0x7b && text.at(-1) === 0x7d);
}

function deadLetter({ message, index, bytes }: Line, reason: string): DeadLetter {
  const { value: _value, ...place } = message;
  const row = bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes;
  return { ...place, format: ROW_FORMAT, line: index, row, reason };
}
