import { ConnectionFailure, exceptionIn } from './read-failures.ts';

/** How much of an exception is read, in bytes. */
const EXCEPTION_BYTES_MAX = 16 * 1_024;

/**
 * Returns the bytes of a result in any format.
 *
 * ClickHouse appends an exception that it meets after it has begun its response: `\r\n__exception__\r\n<tag>\r\n`, and the
 * message. As much as that beginning is held back until what follows has come, so that no part of it is returned.
 *
 * @param tag a random text that the headers of the response name
 * @throws {ClickHouseException} what ClickHouse appended
 * @throws {ConnectionFailure} when the response breaks off
 */
export async function* resultBytes(
  chunks: AsyncIterable<Buffer>,
  tag: string,
): AsyncGenerator<Buffer, void, undefined> {
  const marker = Buffer.from(`\r\n__exception__\r\n${tag}\r\n`);
  let held: Buffer = Buffer.alloc(0);
  let exception: string | undefined;
  try {
    for await (const chunk of chunks) {
      if (exception !== undefined) {
        exception = (exception + chunk.toString()).slice(0, EXCEPTION_BYTES_MAX);
        continue;
      }
      const bytes = Buffer.concat([held, chunk]);
      const exceptionAt = bytes.indexOf(marker);
      if (exceptionAt >= 0) exception = bytes.toString('utf8', exceptionAt);
      const end = Math.max(0, bytes.length - marker.length);
      // A copy, so that it does not keep the rest.
      held = Buffer.from(bytes.subarray(end));
      if (exceptionAt < 0 && end > 0) yield bytes.subarray(0, end);
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
