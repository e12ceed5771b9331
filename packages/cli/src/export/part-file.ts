import { type FileHandle, open, rename } from 'node:fs/promises';
import { countLineFeeds } from '@sluice/shared/text/line-feeds';

const LINE_FEED = 0x0a;
const BLOCK_BYTES = 64 * 1_024;

/** A last line of NDJSON: all was sent. */
const NDJSON_TRAILER = /^\{"complete":true,"events":(\d+)\}$/;
const CSV_TRAILER = /^#complete,(\d+)$/;

interface LastRecord {
  readonly uuid: string;
  readonly timestamp: string;
}

/** What an export has written so far: `FILE.part`, which becomes FILE when it is complete. */
export class PartFile implements AsyncDisposable {
  readonly #file: string;
  readonly #handle: FileHandle;

  private constructor(file: string, handle: FileHandle) {
    this.#file = file;
    this.#handle = handle;
  }

  /** Opens what an earlier export has written, or an empty file. */
  static async open(file: string): Promise<PartFile> {
    return new PartFile(file, await open(partOf(file), 'a+'));
  }

  /** Appends bytes as they come. What came before a failure stays. */
  async append(chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> {
    // A stream of the handle would keep it from being closed.
    for await (const chunk of chunks) await this.#handle.appendFile(chunk);
  }

  /** Removes the beginning of a line that was cut off, and a last line that says that all was sent. */
  async removeUnfinished(): Promise<void> {
    const { size } = await this.#handle.stat();
    await this.#handle.truncate(((await lastLineFeed(this.#handle, size)) ?? -1) + 1);
    const last = await this.#lastLine();
    if (last && NDJSON_TRAILER.test(last.text)) await this.#handle.truncate(last.start);
  }

  /** The record of the last line; `undefined` when there is none. */
  async lastRecord(): Promise<LastRecord | undefined> {
    const last = await this.#lastLine();
    return last && (JSON.parse(last.text) as LastRecord);
  }

  /** How many events the last line says were sent; `undefined` when it does not say so. */
  async trailer(format: 'ndjson' | 'csv'): Promise<number | undefined> {
    const last = await this.#lastLine();
    const events = (format === 'csv' ? CSV_TRAILER : NDJSON_TRAILER).exec(last?.text ?? '')?.[1];
    return events === undefined ? undefined : Number(events);
  }

  async countLines(): Promise<number> {
    let lines = 0;
    const block = Buffer.alloc(BLOCK_BYTES);
    for (let at = 0; ; ) {
      const { bytesRead } = await this.#handle.read(block, 0, block.length, at);
      if (bytesRead === 0) return lines;
      lines += countLineFeeds(block.subarray(0, bytesRead));
      at += bytesRead;
    }
  }

  async clear(): Promise<void> {
    await this.#handle.truncate(0);
  }

  /** Gives the file its name, once it is on the disk. */
  async finish(): Promise<void> {
    await this.#handle.sync();
    await rename(partOf(this.#file), this.#file);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  async #lastLine(): Promise<{ text: string; start: number } | undefined> {
    const { size } = await this.#handle.stat();
    const lineEnd = (await lastLineFeed(this.#handle, size)) ?? -1;
    if (lineEnd < 0) return undefined;
    const start = ((await lastLineFeed(this.#handle, lineEnd)) ?? -1) + 1;
    const line = Buffer.alloc(lineEnd - start);
    await this.#handle.read(line, 0, line.length, start);
    return { text: line.toString(), start };
  }
}

function partOf(file: string): string {
  return `${file}.part`;
}

/** Returns where the last line feed before `end` is. */
async function lastLineFeed(handle: FileHandle, end: number): Promise<number | undefined> {
  const block = Buffer.alloc(BLOCK_BYTES);
  for (let blockEnd = end; blockEnd > 0; blockEnd -= BLOCK_BYTES) {
    const start = Math.max(0, blockEnd - BLOCK_BYTES);
    await handle.read(block, 0, blockEnd - start, start);
    const at = block.subarray(0, blockEnd - start).lastIndexOf(LINE_FEED);
    if (at >= 0) return start + at;
  }
  return undefined;
}
