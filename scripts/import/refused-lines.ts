import { createWriteStream, type WriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { printable } from '@sluice/shared/printable';

/** The list of lines that were refused, as a file that exists only when there are any. */
export interface RefusedLines {
  add(lineNumber: number, reason: string): void;
  close(): Promise<void>;
}

/** Begins a new list; one that an earlier import left is removed. */
export async function createRefusedLines(path: string): Promise<RefusedLines> {
  await rm(path, { force: true });
  let file: WriteStream | undefined;
  let failure: Error | undefined;
  return {
    add(lineNumber, reason) {
      if (!file) {
        file = createWriteStream(path);
        file.on('error', (error) => {
          failure = error;
        });
      }
      // A reason is one line of plain text, whatever the service said.
      file.write(`line ${lineNumber}: ${printable(reason.replaceAll(/\s+/g, ' '))}\n`);
    },
    async close() {
      if (file && !failure) await finished(file.end());
      if (failure) throw failure;
    },
  };
}
