import { keyOf } from './identifiers.ts';

/** How full the table may get. */
const LOAD_MAX = 0.6;

/** When users and visitors were deleted last: 24 bytes for each, found by 64 bits of a hash. */
export class DeletedPersons {
  #size = 0;
  #capacity = 1_024;
  #high = new Uint32Array(this.#capacity);
  #low = new Uint32Array(this.#capacity);
  #versions = new Float64Array(this.#capacity);

  /** How many were deleted. */
  get size(): number {
    return this.#size;
  }

  /** @param version in microseconds since 1970 */
  add(workspace: string, person: string, version: number): void {
    if (this.#size >= this.#capacity * LOAD_MAX) this.#grow();
    const key = keyOf(workspace, person);
    this.#put(key.readUInt32LE(0), key.readUInt32LE(4), version);
  }

  /** Returns the version of the last deletion; 0 without one. */
  versionOf(workspace: string, person: string): number {
    if (this.#size === 0) return 0;
    const key = keyOf(workspace, person);
    return this.#versions[this.#find(key.readUInt32LE(0), key.readUInt32LE(4))] ?? 0;
  }

  #put(high: number, low: number, version: number): void {
    const place = this.#find(high, low);
    const before = this.#versions[place] ?? 0;
    if (before === 0) this.#size += 1;
    this.#high[place] = high;
    this.#low[place] = low;
    this.#versions[place] = Math.max(before, version);
  }

  /** Returns the place of a hash, or the empty one where it belongs. */
  #find(high: number, low: number): number {
    for (let place = low % this.#capacity; ; place = (place + 1) % this.#capacity) {
      if (this.#versions[place] === 0 || (this.#high[place] === high && this.#low[place] === low)) return place;
    }
  }

  #grow(): void {
    const [high, low, versions] = [this.#high, this.#low, this.#versions];
    this.#capacity *= 2;
    this.#size = 0;
    this.#high = new Uint32Array(this.#capacity);
    this.#low = new Uint32Array(this.#capacity);
    this.#versions = new Float64Array(this.#capacity);
    for (const [place, version] of versions.entries()) {
      if (version > 0) this.#put(high[place] ?? 0, low[place] ?? 0, version);
    }
  }
}
