import { type FileHandle, open, rename } from 'node:fs/promises';
import { countLineFeeds } from '@sluice/shared/line-feeds';

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
export interface PartFile extends AsyncDisposable {
  /** Appends bytes as they come. What came before a failure stays. */
  append(chunks: AsyncIterable<Buffer>): Promise<void>;
  /** Removes the beginning of a line that was cut off, and a last line that says that all was sent. */
  removeUnfinished(): Promise<void>;
  /** The record of the last line; `undefined` when there is none. */
  lastRecord(): Promise<LastRecord | undefined>;
  /** How many events the last line says were sent; `undefined` when it does not say so. */
  trailer(format: 'ndjson' | 'csv'): Promise<number | undefined>;
  countLines(): Promise<number>;
  clear(): Promise<void>;
  /** Gives the file its name, once it is on the disk. */
  finish(): Promise<void>;
}

/** Opens what an earlier export has written, or an empty file. */
export async function openPartFile(file: string): Promise<PartFile> {
  const part = `${file}.part`;
  const handle = await open(part, 'a+');

  async function lastLine(): Promise<{ text: string; start: number } | undefined> {
    const { size } = await handle.stat();
    const lineEnd = (await lastLineFeed(handle, size)) ?? -1;
    if (lineEnd < 0) return undefined;
    const start = ((await lastLineFeed(handle, lineEnd)) ?? -1) + 1;
    const line = Buffer.alloc(lineEnd - start);
    await handle.read(line, 0, line.length, start);
    return { text: line.toString(), start };
  }

  return {
    // A stream of the handle would keep it from being closed.
    async append(chunks) {
      for await (const chunk of chunks) await handle.appendFile(chunk);
    },
    async removeUnfinished() {
      const { size } = await handle.stat();
      await handle.truncate(((await lastLineFeed(handle, size)) ?? -1) + 1);
      const last = await lastLine();
      if (last && NDJSON_TRAILER.test(last.text)) await handle.truncate(last.start);
    },
    async lastRecord() {
      const last = await lastLine();
      return last && (JSON.parse(last.text) as LastRecord);
    },
    async trailer(format) {
      const last = await lastLine();
      const events = (format === 'csv' ? CSV_TRAILER : NDJSON_TRAILER).exec(last?.text ?? '')?.[1];
      return events === undefined ? undefined : Number(events);
    },
    async countLines() {
      let lines = 0;
      const block = Buffer.alloc(BLOCK_BYTES);
      for (let at = 0; ; ) {
        const { bytesRead } = await handle.read(block, 0, block.length, at);
        if (bytesRead === 0) return lines;
        lines += countLineFeeds(block.subarray(0, bytesRead));
        at += bytesRead;
      }
    },
    clear: () => handle.truncate(0),
    async finish() {
      await handle.sync();
      await rename(part, file);
    },
    [Symbol.asyncDispose]: () => handle.close(),
  };
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
