import { closeSync, createReadStream, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** How many bytes are gathered before they are written. */
const BUFFER_BYTES = 64 * 1_024;

/** What has to be looked at again: a file of lines, since there may be any number. */
export class Pending<Item> {
  readonly #path: string;
  readonly #file: number;
  #gathered: string[] = [];
  #bytes = 0;
  #count = 0;

  /** @param name a constant */
  constructor(folder: string, name: string) {
    this.#path = join(folder, name);
    this.#file = openSync(this.#path, 'w', 0o600);
  }

  get count(): number {
    return this.#count;
  }

  add(item: Item): void {
    const line = `${JSON.stringify(item)}\n`;
    this.#gathered.push(line);
    this.#bytes += line.length;
    this.#count += 1;
    if (this.#bytes >= BUFFER_BYTES) this.#write();
  }

  /** Returns all of them, in their order, at most `size` at a time. */
  async *batches(size: number): AsyncGenerator<readonly Item[]> {
    this.#write();
    let batch: Item[] = [];
    for await (const line of createInterface({ input: createReadStream(this.#path) })) {
      batch.push(JSON.parse(line) as Item);
      if (batch.length < size) continue;
      yield batch;
      batch = [];
    }
    if (batch.length > 0) yield batch;
  }

  close(): void {
    closeSync(this.#file);
  }

  #write(): void {
    if (this.#gathered.length > 0) writeSync(this.#file, this.#gathered.join(''));
    this.#gathered = [];
    this.#bytes = 0;
  }
}
