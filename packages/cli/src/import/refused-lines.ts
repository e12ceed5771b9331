import { createWriteStream, type WriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { printable } from '@sluice/shared/printable';

/** A file that lists the refused lines. It exists only if there are any. */
export interface RefusedLines {
  add(lineNumber: number, reason: string): void;
  close(): Promise<void>;
}

/** Starts a new list and removes the one of an earlier import. */
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
      // The service's text may hold line ends and control characters.
      file.write(`line ${lineNumber}: ${printable(reason.replaceAll(/\s+/g, ' '))}\n`);
    },
    async close() {
      if (file && !failure) await finished(file.end());
      if (failure) throw failure;
    },
  };
}
