import { mixOf } from './identifiers.ts';

/** An odd number that mixes the bits of another one. */
const SPREAD = 0x9e3779b1;

/** Finds the records of a slice that belong together, by their first bytes. */
export class Groups {
  readonly #bytes: Buffer;
  readonly #recordBytes: number;
  readonly #sameBytes: number;
  readonly #heads: Int32Array;
  /** The next record of the same group, by the number of a record; -1 at its end. */
  readonly #next: Int32Array;

  constructor(bytes: Buffer, recordBytes: number, sameBytes: number) {
    this.#sameBytes = sameBytes;
    this.#bytes = bytes;
    this.#recordBytes = recordBytes;
    const count = bytes.length / recordBytes;
    let capacity = 16;
    while (capacity < count * 2) capacity *= 2;
    this.#heads = new Int32Array(capacity).fill(-1);
    this.#next = new Int32Array(count).fill(-1);
    // From the last to the first: each group begins with its first record.
    for (let index = count - 1; index >= 0; index -= 1) {
      const place = this.#find(bytes, index * recordBytes);
      this.#next[index] = this.#heads[place] ?? -1;
      this.#heads[place] = index;
    }
  }

  /** The number of the first record that belongs to one of any file; -1: none. */
  first(bytes: Buffer, at: number): number {
    return this.#heads[this.#find(bytes, at)] ?? -1;
  }

  /** The number of the next one, in their order; -1 after the last. */
  next(index: number): number {
    return this.#next[index] ?? -1;
  }

  #find(bytes: Buffer, at: number): number {
    const mask = this.#heads.length - 1;
    // The records of a slice have some bits of that number in common.
    const spread = Math.imul(mixOf(bytes, at), SPREAD) >>> 7;
    for (let place = spread & mask; ; place = (place + 1) & mask) {
      const head = this.#heads[place] ?? -1;
      if (head < 0) return place;
      const own = head * this.#recordBytes;
      if (this.#bytes.compare(bytes, at, at + this.#sameBytes, own, own + this.#sameBytes) === 0) return place;
    }
  }
}
