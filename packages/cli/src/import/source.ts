import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { PassThrough, pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ArgumentsError } from '@sluice/shared/config/command-line';

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/** The input of an import: a file or standard input, plain or compressed with gzip, which the first bytes tell. */
export class Source {
  /** The size of the file; `undefined` for standard input. */
  readonly bytesTotal: number | undefined;
  readonly #input: Readable;
  #bytesRead = 0;

  private constructor(input: Readable, bytesTotal: number | undefined) {
    this.#input = input;
    this.bytesTotal = bytesTotal;
  }

  /**
   * Opens a file, or standard input for `-`, until the signal aborts.
   *
   * @throws the system's error when the file does not exist
   * @throws {ArgumentsError} when it is a folder
   */
  static async open(path: string, signal: AbortSignal): Promise<Source> {
    const file = path === '-' ? undefined : await stat(path);
    if (file?.isDirectory())
      throw new ArgumentsError(`${path} is a folder; one FILE is needed, or - for standard input.`);
    const input = path === '-' ? process.stdin : createReadStream(path, { highWaterMark: 256 * 1_024 });
    signal.addEventListener('abort', () => input.destroy());
    return new Source(input, file?.size);
  }

  /** So far, before decompression. */
  get bytesRead(): number {
    return this.#bytesRead;
  }

  /** The bytes of the lines. They can be read once. */
  chunks(): AsyncIterable<Buffer> {
    return unpacked(this.#counted());
  }

  async *#counted(): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of this.#input as AsyncIterable<Buffer>) {
      this.#bytesRead += chunk.length;
      yield chunk;
    }
  }
}

async function* unpacked(chunks: AsyncGenerator<Buffer, void, undefined>): AsyncGenerator<Buffer, void, undefined> {
  const head = await firstBytes(chunks, GZIP_MAGIC.length);
  const whole = resumed(head, chunks);
  if (!head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) {
    yield* whole;
    return;
  }
  const unzipped = new PassThrough();
  // An error of the file or of its contents is thrown by the iteration.
  pipeline(whole, createGunzip(), unzipped, () => undefined);
  yield* unzipped;
}

async function firstBytes(chunks: AsyncGenerator<Buffer, void, undefined>, count: number): Promise<Buffer> {
  let head: Buffer = Buffer.alloc(0);
  while (head.length < count) {
    const { done, value } = await chunks.next();
    if (done) break;
    head = Buffer.concat([head, value]);
  }
  return head;
}

async function* resumed(head: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  if (head.length > 0) yield head;
  yield* rest;
}

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
