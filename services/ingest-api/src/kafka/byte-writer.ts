/** Writes numbers and bytes as Kafka's protocol has them, one after the other, into one buffer of a given size. */
export class ByteWriter {
  readonly #bytes: Buffer;
  #length = 0;

  /** @param size the most that will be written, in bytes */
  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafe(size);
  }

  get length(): number {
    return this.#length;
  }

  /** What was written, from one place to another. It shares the writer's memory. */
  slice(from = 0, to: number = this.#length): Buffer {
    return this.#bytes.subarray(from, to);
  }

  int8(value: number): void {
    this.#length = this.#bytes.writeInt8(value, this.#length);
  }

  int16(value: number): void {
    this.#length = this.#bytes.writeInt16BE(value, this.#length);
  }

  int32(value: number): void {
    this.#length = this.#bytes.writeInt32BE(value, this.#length);
  }

  /** Puts a number in the place of another one that was written at `at`. */
  setInt32(at: number, value: number): void {
    this.#bytes.writeInt32BE(value, at);
  }

  int64(value: bigint): void {
    this.#length = this.#bytes.writeBigInt64BE(value, this.#length);
  }

  /** Writes a whole number from 0 to 2^30 - 1, zigzag-encoded, seven bits a byte. */
  varint(value: number): void {
    let rest = value * 2;
    for (; rest > 0x7f; rest >>>= 7) this.#length = this.#bytes.writeUInt8((rest & 0x7f) | 0x80, this.#length);
    this.#length = this.#bytes.writeUInt8(rest, this.#length);
  }

  bytes(value: Uint8Array): void {
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  /** Writes text of ASCII only. */
  ascii(text: string): void {
    this.#length += this.#bytes.write(text, this.#length, 'latin1');
  }
}

/** Returns how many bytes {@link ByteWriter.varint} writes. */
export function varintSize(value: number): number {
  let size = 1;
  for (let rest = value * 2; rest > 0x7f; rest >>>= 7) size += 1;
  return size;
}
