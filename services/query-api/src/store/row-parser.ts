import { ConnectionFailure, exceptionIn } from './read-failures.ts';

/** One row: its columns in the order of the SELECT. */
export type Row = readonly unknown[];

/** Rows in batches, as they arrive. */
export type RowBatches = AsyncGenerator<readonly Row[], void, undefined>;

/** How much of an exception is read, in characters. */
const EXCEPTION_CHARACTERS_MAX = 16 * 1_024;

/**
 * Parses a response in the format JSONCompactEachRow, a line for each row.
 *
 * ClickHouse appends an exception that it meets after it has begun its response:
 * `\r\n__exception__\r\n<tag>\r\nCode: 395. DB::Exception: …`. A row cannot contain `\r`, since JSON escapes it.
 *
 * @throws {ClickHouseException} what ClickHouse appended
 * @throws {ConnectionFailure} when the response breaks off
 */
export async function* parseRows(chunks: AsyncIterable<string>): RowBatches {
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
