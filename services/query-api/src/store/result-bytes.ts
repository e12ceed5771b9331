import { ConnectionFailure, exceptionIn } from './read-failures.ts';

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
