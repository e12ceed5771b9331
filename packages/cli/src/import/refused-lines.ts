import { createWriteStream, type WriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { printable } from '@sluice/shared/text/printable';

/** A file that lists the refused lines. It exists only if there are any. */
export class RefusedLines {
  readonly #path: string;
  #file: WriteStream | undefined;
  #failure: Error | undefined;

  private constructor(path: string) {
    this.#path = path;
  }

  /** Starts a new list and removes the one of an earlier import. */
  static async create(path: string): Promise<RefusedLines> {
    await rm(path, { force: true });
    return new RefusedLines(path);
  }

  add(lineNumber: number, reason: string): void {
    this.#file ??= this.#open();
    // The service's text may hold line ends and control characters.
    this.#file.write(`line ${lineNumber}: ${printable(reason.replaceAll(/\s+/g, ' '))}\n`);
  }

  /** @throws the system's error when the file could not be written */
  async close(): Promise<void> {
    if (this.#file && !this.#failure) await finished(this.#file.end());
    if (this.#failure) throw this.#failure;
  }

  #open(): WriteStream {
    const file = createWriteStream(this.#path);
    file.on('error', (error) => {
      this.#failure = error;
    });
    return file;
  }
}
