import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** How many bytes of a slice are gathered before they are written. */
const BUFFER_BYTES = 32 * 1_024;

/** Where a record is written to: at `at` of `bytes`. */
export interface Room {
  readonly bytes: Buffer;
  readonly at: number;
}

interface Slice {
  readonly path: string;
  readonly file: number;
  readonly buffer: Buffer;
  /** The bytes of the buffer that are used, and those of the file. */
  used: number;
  written: number;
}

/**
 * Records of one size, in files: a slice each, so that one of them fits into memory. The order of the records of a slice is that
 * in which they came.
 */
export class Slices {
  readonly #recordBytes: number;
  readonly #slices: readonly Slice[];

  /**
   * Opens the files of a name in a folder, and cuts each to a length; they are created where they do not exist.
   *
   * @param name a constant
   * @param lengths one of each slice, as {@link flush} has returned them
   * @throws {RangeError} when a file is shorter
   */
  constructor(folder: string, name: string, recordBytes: number, lengths: readonly number[]) {
    this.#recordBytes = recordBytes;
    const bufferBytes = Math.max(1, Math.floor(BUFFER_BYTES / recordBytes)) * recordBytes;
    this.#slices = lengths.map((length, index) => {
      const path = join(folder, `${name}-${index}`);
      const file = openSync(path, 'a+', 0o600);
      if (fstatSync(file).size < length) throw new RangeError(`${path} is shorter than it was`);
      ftruncateSync(file, length);
      return { path, file, buffer: Buffer.alloc(bufferBytes), used: 0, written: length };
    });
  }

  /** Returns room for another record of a slice. It is filled with zeros. */
  add(index: number): Room {
    const slice = this.#of(index);
    if (slice.used === slice.buffer.length) write(slice);
    const at = slice.used;
    slice.used += this.#recordBytes;
    return { bytes: slice.buffer.fill(0, at, slice.used), at };
  }

  /** Writes what is gathered, and returns the length of each file. */
  flush(): readonly number[] {
    for (const slice of this.#slices) write(slice);
    return this.#slices.map(({ written }) => written);
  }

  /** Returns all records of a slice. */
  read(index: number): Buffer {
    const slice = this.#of(index);
    write(slice);
    return readFileSync(slice.path);
  }

  close(): void {
    for (const { file } of this.#slices) closeSync(file);
  }

  #of(index: number): Slice {
    const slice = this.#slices[index];
    if (!slice) throw new RangeError(`there is no slice ${index}`);
    return slice;
  }
}

function write(slice: Slice): void {
  for (let at = 0; at < slice.used; ) at += writeSync(slice.file, slice.buffer, at, slice.used - at);
  slice.written += slice.used;
  slice.used = 0;
}
