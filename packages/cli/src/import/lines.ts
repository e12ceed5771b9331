const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = Buffer.from('\ufeff');

export interface Line {
  /** Counted from 1. */
  readonly number: number;
  /** Without the line end; `undefined` for a line that is too long to be held in memory. */
  readonly bytes: Buffer | undefined;
}

/** Yields each line of a stream as soon as it is complete. It holds at most `lineBytesMax` and one chunk in memory. */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  lineBytesMax: number,
): AsyncGenerator<Line, void, undefined> {
  let number = 0;
  let held: Buffer[] = [];
  let heldBytes = 0;

  function take(end: Buffer): Line {
    number += 1;
    const tooLong = heldBytes + end.length > lineBytesMax;
    const bytes = tooLong ? undefined : trimmed(held.length === 0 ? end : Buffer.concat([...held, end]), number);
    held = [];
    heldBytes = 0;
    return { number, bytes };
  }

  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      yield take(chunk.subarray(start, end));
      start = end + 1;
    }
    const rest = chunk.subarray(start);
    heldBytes += rest.length;
    // Only the length of a line that is too long matters.
    if (heldBytes > lineBytesMax) held = [];
    else if (rest.length > 0) held.push(rest);
  }
  if (heldBytes > 0) yield take(Buffer.alloc(0));
}

function trimmed(bytes: Buffer, number: number): Buffer {
  const start = number === 1 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0;
  const end = bytes.at(-1) === CARRIAGE_RETURN ? bytes.length - 1 : bytes.length;
  return bytes.subarray(start, end);
}
